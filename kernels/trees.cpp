// f(x) = sum over trees of the value of the leaf that x reaches.

#include <cmath>

#include "arrays.h"
#include "descend.h"
#include "kernels.h"

namespace limes {
namespace {

// Add to total (n, k) the leaf values of each row of x (n, d). All rows go down a tree before the next tree is looked
// at: one tree fits the nearest cache.
void add_leaves(Matrix x, Integers feature, Vector threshold, Integers left, Integers right, Flags missing_left,
                Integers set_of, Array<const bool, 2> sets, Matrix value, Integers roots, MatrixOut total) {
  const Nodes nodes{feature, threshold, left, right, set_of, sets};
  const auto count = static_cast<std::int64_t>(feature.size());
  const std::size_t rows = x.shape(0), outputs = total.shape(1);
  nodes.check(x.shape(1));
  require(missing_left.size() == feature.size() && value.shape(0) == feature.size() && value.shape(1) == outputs &&
              total.shape(0) == rows,
          "value must be (nodes, outputs) and total (rows, outputs)");
  for (std::size_t t = 0; t < roots.size(); ++t) {
    require(0 <= roots(t) && roots(t) < count, "a root is no node");
    for (std::size_t i = 0; i < rows; ++i) {
      const double* row = x.data() + i * x.shape(1);
      auto node = static_cast<std::size_t>(roots(t));
      while (nodes.is_split(node)) {
        const double at = row[nodes.column(node)];
        node = nodes.child(node, std::isnan(at) ? missing_left.data()[node] : nodes.goes_left(node, at));
      }
      const double* leaf = value.data() + node * outputs;
      double* sum = total.data() + i * outputs;
      for (std::size_t k = 0; k < outputs; ++k) sum[k] += leaf[k];
    }
  }
}

}  // namespace

void add_trees(nb::module_& module) { define(module, "add_leaves", &add_leaves); }

}  // namespace limes
