// The sums of kept_products.h, called from Python.

#include "kept_products.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "kernels.h"
#include "processor.h"

namespace limes {
namespace {

using Table = Array<const std::int64_t, 2>;

void check(const std::int64_t* at, std::size_t size, std::size_t count, const char* what) {
  for (std::size_t i = 0; i < size; ++i) require(0 <= at[i] && static_cast<std::size_t>(at[i]) < count, what);
}

// Add to sums (rows, outputs) and changes (rows, factors, outputs), with the loops for one set of instructions; see
// KeptTask. Of each factor: means (patterns, 2N) and its numbers along (points, 2K) and across (points, 2L) a grid, real parts
// before imaginary ones; no factor has the latter if nodes are no grid. Patterns are (factors, points), start (points + 1,),
// first and second (N,), shares (factors, rows, 2), weights (outputs, 2N).
void add_kept_products(const std::vector<Matrix>& means, const std::vector<Matrix>& along,
                       const std::vector<Matrix>& across, Table patterns, Integers start, Integers first, Integers second,
                       Array<const double, 3> shares, Matrix weights, MatrixOut sums, TensorOut changes, const char* only) {
  const std::size_t factors = means.size(), length = weights.shape(1), rows = sums.shape(0), points = patterns.shape(1);
  const bool is_grid = !across.empty();
  require(factors > 0 && along.size() == factors && (!is_grid || across.size() == factors) && patterns.shape(0) == factors,
          "all factors must have means, numbers and patterns");
  require(length % 2 == 0 && sums.shape(1) == weights.shape(0) && first.shape(0) == length / 2 &&
              second.shape(0) == length / 2,
          "weights must be (outputs, 2 nodes), sums (rows, outputs), first and second (nodes,)");
  require(shares.shape(0) == factors && shares.shape(1) == rows && shares.shape(2) == 2 && changes.shape(0) == rows &&
              changes.shape(1) == factors && changes.shape(2) == sums.shape(1),
          "shares must be (factors, rows, 2), changes (rows, factors, outputs)");
  require(start.shape(0) == points + 1 && start(0) == 0 && static_cast<std::size_t>(start(points)) == rows &&
              std::is_sorted(start.data(), start.data() + points + 1),
          "start must be (points + 1,), the first row of each point");
  KeptTask task{points, length / 2, weights.shape(0), along[0].shape(1) / 2, is_grid ? across[0].shape(1) / 2 : 0, {},
                start.data(), first.data(), second.data(), weights.data(), sums.data(), changes.data()};
  check(first.data(), task.nodes, task.length_along, "there is no such number along the grid, first must be below");
  if (is_grid) check(second.data(), task.nodes, task.length_across, "there is no such number across, second must be below");
  for (std::size_t f = 0; f < factors; ++f) {
    require(means[f].shape(1) == length && along[f].shape(0) == points && along[f].shape(1) == 2 * task.length_along,
            "tables must be (patterns, 2 nodes) and (points, 2 numbers)");
    require(!is_grid || (across[f].shape(0) == points && across[f].shape(1) == 2 * task.length_across),
            "numbers across must be (points, 2 numbers)");
    const std::int64_t* pattern = patterns.data() + f * points;
    check(pattern, points, means[f].shape(0), "there is no such pattern");
    task.factors.push_back({means[f].data(), along[f].data(), is_grid ? across[f].data() : nullptr, pattern,
                            shares.data() + 2 * f * rows});
  }
  const AddKeptProducts add = widest(only, avx512_kept_products(), avx2_kept_products(), portable_kept_products());
  [[maybe_unused]] const FlushToZero flush;
  add(task);
}

}  // namespace

void add_kept_products_to(nb::module_& module) { define(module, "add_kept_products", &add_kept_products); }

}  // namespace limes
