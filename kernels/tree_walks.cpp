// The values of tree_walks.h, called from Python.

#include "tree_walks.h"

#include <algorithm>

#include "arrays.h"
#include "kernels.h"
#include "processor.h"

namespace limes {
namespace {

AddWalks widest() {
  if (has_avx512() && avx512_walks() != nullptr) return avx512_walks();
  return has_avx2() && avx2_walks() != nullptr ? avx2_walks() : portable_walks();
}

// Write the forest's values along walks from rows ``starts`` (walks, d) to the row ``end`` (d,), in orders of columns
// (walks, d), to values (walks, d + 1, outputs). There are at most 65534 columns, with at most 65534 thresholds each.
void add_walks(const Trees& trees, Matrix value, Vector end, Matrix starts, Array<const std::int64_t, 2> orders,
               TensorOut values) {
  const std::size_t columns = trees.columns(), walks = orders.shape(0);
  require(columns <= kMostColumns, "there are too many columns");
  const std::vector<std::size_t>& starts_of = trees.thresholds().starts;
  for (std::size_t j = 0; j < columns; ++j) {
    require(starts_of[j + 1] - starts_of[j] <= kMostThresholds, "a column has too many thresholds");
  }
  require(end.size() == columns && starts.shape(0) == walks && starts.shape(1) == columns &&
              orders.shape(1) == columns,
          "rows and orders must have the columns of the trees");
  require(value.shape(0) == trees.size() && values.shape(0) == walks && values.shape(1) == columns + 1 &&
              values.shape(2) == value.shape(1),
          "value must be (nodes, outputs) and values (walks, columns + 1, outputs)");
  std::vector<std::size_t> seen(columns, walks);
  for (std::size_t i = 0; i < walks; ++i) {
    for (std::size_t s = 0; s < columns; ++s) {
      const std::int64_t j = orders(i, s);
      require(0 <= j && static_cast<std::size_t>(j) < columns && seen[static_cast<std::size_t>(j)] != i,
              "an order must have every column once");
      seen[static_cast<std::size_t>(j)] = i;
    }
  }
  static const AddWalks add = widest();
  add({trees, value.data(), value.shape(1), end.data(), starts.data(), orders.data(), walks,
       values.data()});
}

}  // namespace

void add_tree_walks(nb::module_& module) { define(module, "add_walks", &add_walks); }

}  // namespace limes
