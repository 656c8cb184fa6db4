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
  [[maybe_unused]] const FlushToZero flush;
  static const AddNodeProducts add =
      has_avx2() && avx2_node_products() != nullptr ? avx2_node_products() : portable_node_products();
  add(task);
}

}  // namespace

void add_node_products_to(nb::module_& module) {
  define(module, "add_node_products", &add_node_products);
}

}  // namespace limes
