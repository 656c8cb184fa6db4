// Which set of instructions passes over blocks of rows: the widest that this processor has.

#include "forest_block.h"

#include <algorithm>

#include "arrays.h"
#include "forest_effects.h"
#include "kernels.h"
#include "pool_squares.h"
#include "processor.h"

namespace limes {
namespace {

template <typename Cells>
void check_cells(const Cells& cells, std::size_t width) {
  const std::uint32_t* last = cells.data() + cells.size();
  require(std::all_of(cells.data(), last, [&](std::uint32_t cell) { return cell < width; }), "a cell is out of range");
  require(width < (1u << 24), "there are too many cells");
}

nb::list instructions() {
  nb::list names;
  if (has_avx512() && avx512_rows(4) != nullptr) names.append("avx512");
  if (has_avx2() && avx2_rows(4) != nullptr) names.append("avx2");
  names.append("portable");
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
  check_cells(cells, width);
  const ExplainRows explain = widest(only, avx512_rows(width), avx2_rows(width), portable_rows(width));
  if (splits.count() == 0 || rows == 0) return;
  explain(splits, {table.data(), width}, cells.data(), rows, mean.data(), contrast.data());
}

// Add the means given each cell (rows, d, cells, k), less a number a row and column, to effects: forest_effects.h.
void effects_block(const Splits& splits, Array<const double, 3> table, Array<const double, 3> shares,
                   Array<const std::uint32_t, 2> cells, Array<double, 4> effects, const char* only) {
  const std::size_t rows = cells.shape(0), width = table.shape(2);
  require(table.shape(0) == splits.count() && table.shape(1) == 4, "the table must be (splits, 4, cells)");
  require(shares.shape(0) == splits.count() && shares.shape(1) == 4 && shares.shape(2) == width,
          "the shares must be (splits, 4, cells)");
  require(cells.shape(1) == splits.columns, "cells must be (rows, columns)");
  require(effects.shape(0) == rows && effects.shape(1) == splits.columns && effects.shape(2) == width &&
              effects.shape(3) == splits.outputs,
          "effects must be (rows, columns, cells, outputs)");
  check_cells(cells, width);
  const EffectsOfRows add = widest(only, avx512_effects(width), avx2_effects(width), portable_effects(width));
  if (splits.count() == 0 || rows == 0) return;
  add(splits, {table.data(), width}, {shares.data(), width}, cells.data(), rows, effects.data());
}

// Sums of weights (n, 2) and weighted squares (n, k, 3) of what n surrogates leave of a pool: pool_squares.h.
void squares_of_pool(Array<const std::uint32_t, 2> cells, Matrix answers, Array<const double, 3> factors,
                     Array<const double, 4> curves, Matrix bases, MatrixOut weights, TensorOut squares,
                     const char* only) {
  const std::size_t rows = cells.shape(0), columns = cells.shape(1), outputs = answers.shape(0);
  const std::size_t count = factors.shape(0), width = factors.shape(2);
  require(answers.shape(1) == rows && rows % kBlock == 0, "answers must be (outputs, rows), 64 rows or a multiple");
  require(factors.shape(1) == columns, "factors must be (surrogates, columns, cells)");
  require(curves.shape(0) == count && curves.shape(1) == columns && curves.shape(2) == outputs &&
              curves.shape(3) == width,
          "curves must be (surrogates, columns, outputs, cells)");
  require(bases.shape(0) == count && bases.shape(1) == outputs, "bases must be (surrogates, outputs)");
  require(weights.shape(0) == count && weights.shape(1) == 2 && squares.shape(0) == count &&
              squares.shape(1) == outputs && squares.shape(2) == 3,
          "weights must be (surrogates, 2) and squares (surrogates, outputs, 3)");
  check_cells(cells, width);
  const PoolSquares add = widest(only, avx512_squares(width), avx2_squares(width), portable_squares(width));
  add({rows, columns, outputs, cells.data(), answers.data()},
      {count, width, factors.data(), curves.data(), bases.data()}, weights.data(), squares.data());
}

}  // namespace

void add_forest_block(nb::module_& module) {
  module.def("instructions", &instructions);
  define(module, "explain_block", &explain_block);
  define(module, "effects_block", &effects_block);
  define(module, "squares_of_pool", &squares_of_pool);
}

}  // namespace limes
