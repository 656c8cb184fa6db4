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
void explain_block(const Splits& splits, Array<const double, 3> table, Array<const std::uint32_t, 2> cells,
                   MatrixOut mean, TensorOut contrast, const char* only) {
  const std::size_t rows = cells.shape(0), width = table.shape(2);
  require(table.shape(0) == splits.count() && table.shape(1) == 4, "the table must be (splits, 4, cells)");
  require(cells.shape(1) == splits.columns, "cells must be (rows, columns)");
  require(mean.shape(0) == rows && mean.shape(1) == splits.outputs && contrast.shape(0) == rows &&
              contrast.shape(1) == splits.columns && contrast.shape(2) == splits.outputs,
          "mean must be (rows, outputs) and contrast (rows, columns, outputs)");
  const std::uint32_t* last = cells.data() + cells.size();
  require(std::all_of(cells.data(), last, [&](std::uint32_t cell) { return cell < width; }), "a cell is out of range");
  require(width < (1u << 24), "there are too many cells");
  if (splits.count() == 0 || rows == 0) return;
  for (const Instructions& set : kInstructions) {
    if (!set.is_here() || (*only != 0 && std::strcmp(only, set.name) != 0)) continue;
    const ExplainRows explain = set.rows(width);
    if (explain == nullptr) continue;
    explain(splits, {table.data(), width}, cells.data(), rows, mean.data(), contrast.data());
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
