// The pass of forest_pairs.h, called from Python.

#include "forest_pairs.h"

#include "arrays.h"
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
  require(intervals.splits.size() == splits.count(), "intervals must be those of the splits");
  require(masses.shape(0) == splits.count() && masses.shape(1) == 2, "masses must be (splits, 2, cells)");
  require(cells.shape(1) == columns && places.shape(0) == rows && places.shape(1) == columns,
          "cells and places must be (rows, columns)");
  require(first.size() == columns && members.shape(1) == rows, "first must be (columns,) and members (sets, rows)");
  require((nodes == 4 || nodes == 8) && t.shape(1) == 2 && weights.size() == nodes,
          "t must be (4 or 8, 2) and weights (4 or 8,)");
  require(pairs.shape(0) == rows && 2 * pairs.shape(1) == columns * (columns - 1) && pairs.shape(2) == splits.outputs,
          "pairs must be (rows, columns (columns - 1) / 2, outputs)");
  require(std::all_of(cells.data(), cells.data() + cells.size(), [&](std::uint32_t cell) { return cell < width; }),
          "a cell is out of range");
  require(std::all_of(trees.data(), trees.data() + trees.size(),
                      [&](std::uint32_t tree) { return tree < splits.trees(); }),
          "there is no such tree");
  for (std::size_t j = 0; j < columns; ++j) {
    if (first(j) < 0) continue;
    const auto offset = static_cast<std::size_t>(first(j));
    require(offset <= intervals.start[j] && intervals.start[j + 1] - offset <= members.shape(0),
            "members must have a row for each set");
  }
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
