// The pass of forest_pairs.h, called from Python.

#include "forest_pairs.h"

#include "arrays.h"
#include "forest_arguments.h"
#include "kernels.h"
#include "processor.h"

namespace limes {
namespace {

// Add to pairs (rows, columns (columns - 1) / 2, outputs) what these trees contribute; see PairsTask. Masses are those of
// `edge_masses`, weights (T,).
void add_forest_pair_sums(const Splits& splits, const Intervals& intervals, Array<const double, 3> masses,
                          Array<const std::uint32_t, 2> cells, Array<const std::uint32_t, 2> places,
                          Array<const bool, 2> members, Integers first, Places trees, Matrix t, Vector weights,
                          TensorOut pairs, const char* only) {
  const std::size_t rows = cells.shape(0), columns = splits.columns, nodes = t.shape(0), width = masses.shape(2);
  require(masses.shape(0) == splits.count() && masses.shape(1) == 2, "masses must be (splits, 2, cells)");
  require((nodes == 4 || nodes == 8) && t.shape(1) == 2 && weights.size() == nodes,
          "t must be (4 or 8, 2) and weights (4 or 8,)");
  require(pairs.shape(0) == rows && 2 * pairs.shape(1) == columns * (columns - 1) && pairs.shape(2) == splits.outputs,
          "pairs must be (rows, columns (columns - 1) / 2, outputs)");
  require_rows_and_trees(splits, intervals, width, cells, places, members, first, trees);
  const AddPairs add = widest(only, avx512_pairs(nodes), avx2_pairs(nodes), portable_pairs(nodes));
  if (rows == 0 || trees.size() == 0 || pairs.shape(1) == 0) return;
  [[maybe_unused]] const FlushToZero flush;
  add({{splits, intervals, masses.data(), width, cells.data(), places.data(), members.data(), first.data(), rows,
        trees.data(), trees.size(), t.data(), weights.data(), nullptr, nullptr},
       pairs.data()});
}

}  // namespace

void add_forest_pairs(nb::module_& module) { define(module, "add_forest_pairs", &add_forest_pair_sums); }

}  // namespace limes
