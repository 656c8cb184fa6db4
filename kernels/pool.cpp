// The sums of pool.h and pool_errors.h, called from Python: cells (columns, rows) are bytes, or words where a column has
// more cells than a byte can tell apart.

#include "pool.h"

#include "arrays.h"
#include "kernels.h"
#include "processor.h"

namespace limes {
namespace {

using Tensor = Array<const double, 3>;
template <typename Cell>
using Cells = Array<const Cell, 2>;
template <typename T, int Dimensions>
using Out = Array<T, Dimensions>;

template <typename Cell>
const PoolLoops<Cell>& loops() {
  static const PoolLoops<Cell> chosen =
      has_avx2() && avx2_pool<Cell>().sums != nullptr ? avx2_pool<Cell>() : portable_pool<Cell>();
  return chosen;
}

template <typename Cell>
PoolRows<Cell> pool_rows(const Cells<Cell>& cells, const Cells<Cell>& instances, const Matrix& weights,
                         std::size_t parts) {
  const std::size_t columns = cells.shape(0), rows = cells.shape(1), count = instances.shape(0);
  require(instances.shape(1) == columns && weights.shape(0) == count && weights.shape(1) == columns + 1,
          "instances and weights must fit the cells (columns, rows)");
  require(rows > 0 && parts > 0 && rows % parts == 0, "parts of the rows must be equal");
  return {rows, columns, count, cells.data(), instances.data(), weights.data()};
}

// sums (count, parts, 1 + columns, size) of values (rows, size).
template <typename Cell>
void pool_sums(Cells<Cell> cells, Cells<Cell> instances, Matrix weights, Matrix values, Out<double, 4> sums) {
  const auto pool = pool_rows<Cell>(cells, instances, weights, sums.shape(1));
  require(values.shape(0) == pool.rows && sums.shape(0) == pool.count && sums.shape(2) == pool.columns + 1 &&
              sums.shape(3) == values.shape(1),
          "sums must be (count, parts, 1 + columns, size)");
  loops<Cell>().sums(pool, {values.shape(1), sums.shape(1), values.data(), sums.data()});
}

// gram (count, parts, 1 + columns, 1 + columns), squares and numbers (count, 1 + columns).
template <typename Cell>
void pool_gram(Cells<Cell> cells, Cells<Cell> instances, Matrix weights, Out<double, 4> gram, MatrixOut squares,
               MatrixOut numbers) {
  const auto pool = pool_rows<Cell>(cells, instances, weights, gram.shape(1));
  const std::size_t columns = pool.columns + 1;
  require(gram.shape(0) == pool.count && gram.shape(2) == columns && gram.shape(3) == columns &&
              squares.shape(0) == pool.count && squares.shape(1) == columns && numbers.shape(0) == pool.count &&
              numbers.shape(1) == columns,
          "gram must be (count, parts, 1 + columns, 1 + columns)");
  loops<Cell>().gram(pool, {gram.shape(1), gram.data(), squares.data(), numbers.data()});
}

// Arrays as in ErrorSums; rounding and negligible are the rows of `limits` (2, outputs).
template <typename Cell>
void pool_errors(Cells<Cell> cells, Cells<Cell> instances, Matrix weights, Matrix answers, Matrix residuals,
                 Array<const std::uint8_t, 2> differs, Matrix limits, Array<const double, 5> coef, Matrix center,
                 Out<double, 4> powers, Out<double, 4> moved, TensorOut totals, MatrixOut sides, bool separate) {
  const std::size_t parts = coef.shape(2), sequences = moved.shape(2), outputs = answers.shape(1);
  const auto pool = pool_rows<Cell>(cells, instances, weights, parts);
  const std::size_t columns = pool.columns + 1, count = pool.count;
  require(sequences > 0 && pool.rows % sequences == 0, "sequences must be equal");
  require(answers.shape(0) == pool.rows && residuals.shape(0) == pool.rows && residuals.shape(1) == outputs &&
              differs.shape(0) == pool.rows && differs.shape(1) == outputs && limits.shape(0) == 2 &&
              limits.shape(1) == outputs,
          "answers must be (rows, outputs)");
  require(coef.shape(0) == count && coef.shape(1) == outputs && coef.shape(3) == columns && coef.shape(4) == kFitted &&
              center.shape(0) == count && center.shape(1) == outputs,
          "coef must be (count, outputs, parts, 1 + columns, 5)");
  require(powers.shape(0) == count && powers.shape(1) == outputs && powers.shape(2) == columns &&
              powers.shape(3) == kPowers && moved.shape(0) == count && moved.shape(1) == outputs &&
              moved.shape(3) == columns + 1 && totals.shape(0) == count && totals.shape(1) == outputs &&
              totals.shape(2) == kTotals && sides.shape(0) == count && sides.shape(1) == kSides,
          "sums must be those of pool_errors.h");
  loops<Cell>().errors(pool, {outputs, parts, sequences, separate, answers.data(), residuals.data(), differs.data(),
                              limits.data(), limits.data() + outputs, coef.data(), center.data(), powers.data(),
                              moved.data(), totals.data(), sides.data()});
}

template <typename Cell>
void add_loops(nb::module_& module) {
  define(module, "pool_sums", &pool_sums<Cell>);
  define(module, "pool_gram", &pool_gram<Cell>);
  define(module, "pool_errors", &pool_errors<Cell>);
}

}  // namespace

void add_pool(nb::module_& module) {
  add_loops<std::uint8_t>(module);
  add_loops<std::uint32_t>(module);
}

}  // namespace limes
