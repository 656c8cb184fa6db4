// Which set of instructions explains blocks of rows: the widest that this processor has.

#include "forest_block.h"

#include <algorithm>
#include <cstring>

#include "arrays.h"
#include "kernels.h"
#include "processor.h"

namespace limes {
namespace {

struct Instructions {
  const char* name;
  ExplainRows (*rows)(std::size_t width);
  bool (*is_here)();
};

bool always() { return true; }

const Instructions kInstructions[] = {
    {"avx512", &avx512_rows, &has_avx512}, {"avx2", &avx2_rows, &has_avx2}, {"portable", &portable_rows, &always}};

nb::list instructions() {
  nb::list names;
  for (const Instructions& set : kInstructions) {
    if (set.is_here() && set.rows(4) != nullptr) names.append(set.name);
  }
  return names;
}

// Add E_w f (rows, k) and contrasts (rows, d, k) of all trees to mean and contrast, for rows given by their cells
// (rows, d). Splits come depth first, so that only one path is open at any time: its probabilities and sums stay in
// the nearest cache. `only` names the instructions to use, "" the widest there are.
void explain_block(Places depth, Flags has_leaf, Places column, Places parent, Places side,
                   Array<const double, 3> leaves, Array<const double, 3> table, Array<const std::uint32_t, 2> cells,
                   MatrixOut mean, TensorOut contrast, const char* only) {
  const std::size_t count = depth.size(), columns = cells.shape(1), outputs = leaves.shape(2), width = table.shape(2);
  require(has_leaf.size() == count && column.size() == count && parent.size() == count && side.size() == count &&
              leaves.shape(0) == count && leaves.shape(1) == 2 && table.shape(0) == count && table.shape(1) == 4,
          "splits must have one length");
  require(mean.shape(0) == cells.shape(0) && mean.shape(1) == outputs && contrast.shape(0) == cells.shape(0) &&
              contrast.shape(1) == columns && contrast.shape(2) == outputs,
          "mean must be (rows, outputs) and contrast (rows, columns, outputs)");
  std::size_t deepest = 0;
  for (std::size_t s = 0; s < count; ++s) {
    require(column(s) < columns && side(s) < 2, "a split's column is out of range");
    require(depth(s) == 0 || (parent(s) < s && depth(parent(s)) + 1 == depth(s)), "a parent must come before its child");
    deepest = std::max<std::size_t>(deepest, depth(s));
  }
  const std::uint32_t* last = cells.data() + cells.size();
  require(std::all_of(cells.data(), last, [&](std::uint32_t cell) { return cell < width; }), "a cell is out of range");
  require(width < (1u << 24), "there are too many cells");
  if (count == 0 || cells.shape(0) == 0) return;
  const Splits splits{count,       columns,       outputs,     width,           deepest + 1,   depth.data(),
                      column.data(), parent.data(), side.data(), has_leaf.data(), leaves.data(), table.data()};
  for (const Instructions& set : kInstructions) {
    if (!set.is_here() || (*only != 0 && std::strcmp(only, set.name) != 0)) continue;
    const ExplainRows rows = set.rows(width);
    if (rows == nullptr) continue;
    rows(splits, cells.data(), cells.shape(0), mean.data(), contrast.data());
    return;
  }
  throw std::invalid_argument("this processor does not have these instructions");
}

}  // namespace

void add_forest_block(nb::module_& module) {
  module.def("instructions", &instructions);
  define(module, "explain_block", &explain_block);
}

}  // namespace limes
