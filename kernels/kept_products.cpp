// The sums of kept_products.h, called from Python.

#include "kept_products.h"

#include <nanobind/stl/string.h>

#include "arrays.h"
#include "kernels.h"
#include "processor.h"

namespace limes {
namespace {

using Table = Array<const std::int64_t, 2>;
using Tensor = Array<const double, 3>;

void check(const std::int64_t* at, std::size_t size, std::size_t count, const char* what) {
  for (std::size_t i = 0; i < size; ++i) require(0 <= at[i] && static_cast<std::size_t>(at[i]) < count, what);
}

// Add to sums (rows, outputs) and changes (rows, factors, outputs), with the loops for one set of instructions; see
// KeptTask. Means are those of all factors, (patterns, 2N), numbers along (factors, points, 2K) and across (factors, points, 2L)
// a grid, real parts before imaginary ones; no factor has the latter if nodes are no grid. Patterns, of all factors, are
// (factors, points), start (points + 1,), first and second (N,), shares (factors, rows, 2), weights (outputs, 2N).
void add_kept_products(Matrix means, Tensor along, Tensor across, Table patterns, Integers start, Integers first,
                       Integers second, Tensor shares, Matrix weights, MatrixOut sums, TensorOut changes, const char* only) {
  const std::size_t factors = along.shape(0), length = weights.shape(1), rows = sums.shape(0), points = patterns.shape(1);
  const bool is_grid = across.shape(0) > 0;
  require(factors > 0 && (!is_grid || across.shape(0) == factors) && patterns.shape(0) == factors,
          "all factors must have numbers and patterns");
  require(length % 2 == 0 && sums.shape(1) == weights.shape(0) && first.shape(0) == length / 2 &&
              second.shape(0) == length / 2,
          "weights must be (outputs, 2 nodes), sums (rows, outputs), first and second (nodes,)");
  require(shares.shape(0) == factors && shares.shape(1) == rows && shares.shape(2) == 2 && changes.shape(0) == rows &&
              changes.shape(1) == factors && changes.shape(2) == sums.shape(1),
          "shares must be (factors, rows, 2), changes (rows, factors, outputs)");
  require(start.shape(0) == points + 1 && start(0) == 0 && static_cast<std::size_t>(start(points)) == rows &&
              std::is_sorted(start.data(), start.data() + points + 1),
          "start must be (points + 1,), the first row of each point");
  require(means.shape(1) == length && along.shape(1) == points && along.shape(2) % 2 == 0,
          "means must be (patterns, 2 nodes), numbers (factors, points, 2 numbers)");
  require(!is_grid || (across.shape(1) == points && across.shape(2) % 2 == 0),
          "numbers across must be (factors, points, 2 numbers)");
  check(patterns.data(), factors * points, means.shape(0), "there is no such pattern");
  KeptTask task{points, length / 2, weights.shape(0), along.shape(2) / 2, is_grid ? across.shape(2) / 2 : 0, {},
                start.data(), first.data(), second.data(), weights.data(), sums.data(), changes.data()};
  check(first.data(), task.nodes, task.length_along, "there is no such number along the grid, first must be below");
  if (is_grid) check(second.data(), task.nodes, task.length_across, "there is no such number across, second must be below");
  for (std::size_t f = 0; f < factors; ++f) {
    const double* across_grid = is_grid ? across.data() + f * points * across.shape(2) : nullptr;
    task.factors.push_back({means.data(), along.data() + f * points * along.shape(2), across_grid,
                            patterns.data() + f * points, shares.data() + 2 * f * rows});
  }
  const AddKeptProducts add = widest(only, avx512_kept_products(), avx2_kept_products(), portable_kept_products());
  [[maybe_unused]] const FlushToZero flush;
  add(task);
}

}  // namespace

void add_kept_products_to(nb::module_& module) { define(module, "add_kept_products", &add_kept_products); }

}  // namespace limes
