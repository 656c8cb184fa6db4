// The sums of node_products.h, called from Python.

#include "node_products.h"

#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "kernels.h"
#include "processor.h"

namespace limes {
namespace {

using Tensor = Array<const double, 3>;
using Patterns = Array<const std::int64_t, 2>;

void check(const Patterns& patterns, std::size_t f, std::size_t count) {
  for (std::size_t i = 0; i < patterns.shape(1); ++i) {
    require(0 <= patterns(f, i) && static_cast<std::size_t>(patterns(f, i)) < count, "there is no such pattern");
  }
}

void run(const NodeTask& task) {
  [[maybe_unused]] const FlushToZero flush;
  static const AddNodeProducts add =
      has_avx2() && avx2_node_products() != nullptr ? avx2_node_products() : portable_node_products();
  add(task);
}

// Add Re sum_n w_kn prod_f m_f[n] to sums (rows, outputs), and the same with each change of a factor in its place to
// changes (rows, all widths, outputs). Of each factor: means (patterns, 2N) and changes (patterns, width, 2N), real parts
// before imaginary ones, and its pattern in every row, patterns (factors, rows). Weights are (outputs, 2N), too.
void add_node_products(const std::vector<Matrix>& means, const std::vector<Tensor>& replaced, Patterns patterns,
                       Matrix weights, MatrixOut sums, TensorOut changes) {
  const std::size_t factors = means.size(), length = weights.shape(1), rows = sums.shape(0);
  require(length % 2 == 0 && sums.shape(1) == weights.shape(0) && replaced.size() == factors &&
              patterns.shape(0) == factors && (factors == 0 || patterns.shape(1) == rows),
          "factors must have patterns (factors, rows), sums (rows, outputs)");
  NodeTask task{rows, length / 2, weights.shape(0), {}, weights.data(), sums.data(), changes.data()};
  std::size_t widths = 0;
  for (std::size_t f = 0; f < factors; ++f) {
    const std::size_t count = means[f].shape(0), width = replaced[f].shape(1);
    require(means[f].shape(1) == length && replaced[f].shape(0) == count && replaced[f].shape(2) == length,
            "tables must be (patterns, 2 nodes) and (patterns, width, 2 nodes)");
    check(patterns, f, count);
    task.factors.push_back({means[f].data(), replaced[f].data(), width, patterns.data() + f * rows});
    widths += width;
  }
  require(changes.shape(0) == rows && changes.shape(1) == widths && changes.shape(2) == sums.shape(1),
          "changes must be (rows, all widths, outputs)");
  run(task);
}

// The same of factors that keep numbers of a row: of each factor means (patterns, 2N) and kept numbers (points, 2N), its
// pattern and its point in every row, (factors, rows) each, and its shares (factors, rows, 2).
void add_kept_products(const std::vector<Matrix>& means, const std::vector<Matrix>& kept, Patterns patterns,
                       Patterns points, Tensor shares, Matrix weights, MatrixOut sums, TensorOut changes) {
  const std::size_t factors = means.size(), length = weights.shape(1), rows = sums.shape(0);
  require(length % 2 == 0 && sums.shape(1) == weights.shape(0) && kept.size() == factors,
          "factors must have means and kept numbers, sums (rows, outputs)");
  require(patterns.shape(0) == factors && patterns.shape(1) == rows && points.shape(0) == factors &&
              points.shape(1) == rows && shares.shape(0) == factors && shares.shape(1) == rows && shares.shape(2) == 2,
          "patterns and points must be (factors, rows), shares (factors, rows, 2)");
  require(changes.shape(0) == rows && changes.shape(1) == factors && changes.shape(2) == sums.shape(1),
          "changes must be (rows, factors, outputs)");
  NodeTask task{rows, length / 2, weights.shape(0), {}, weights.data(), sums.data(), changes.data()};
  for (std::size_t f = 0; f < factors; ++f) {
    require(means[f].shape(1) == length && kept[f].shape(1) == length, "tables must be (numbers, 2 nodes)");
    check(patterns, f, means[f].shape(0));
    check(points, f, kept[f].shape(0));
    task.factors.push_back({means[f].data(), nullptr, 1, patterns.data() + f * rows, kept[f].data(),
                            points.data() + f * rows, shares.data() + 2 * f * rows});
  }
  run(task);
}

}  // namespace

void add_node_products_to(nb::module_& module) {
  define(module, "add_node_products", &add_node_products);
  define(module, "add_kept_products", &add_kept_products);
}

}  // namespace limes
