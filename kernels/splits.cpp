// Splits, taken over from numpy's arrays.

#include "splits.h"

#include <algorithm>

#include "arrays.h"
#include "kernels.h"

namespace limes {
namespace {

// A split is a tree's first where its depth is 0.
Splits checked(std::size_t columns, Places depth, Flags has_leaf, Places column, Places parent, Places side,
               Array<const double, 3> leaves) {
  const std::size_t count = depth.size();
  require(has_leaf.size() == count && column.size() == count && parent.size() == count && side.size() == count &&
              leaves.shape(0) == count && leaves.shape(1) == 2,
          "splits must have one length");
  const auto copy = [](const Places& places) { return std::vector<std::uint32_t>(places.data(), places.data() + places.size()); };
  Splits splits;
  splits.columns = columns, splits.outputs = leaves.shape(2);
  splits.depth = copy(depth), splits.column = copy(column), splits.parent = copy(parent);
  splits.side.assign(side.data(), side.data() + count);
  splits.has_leaf.assign(has_leaf.data(), has_leaf.data() + count);
  splits.leaves.assign(leaves.data(), leaves.data() + leaves.size());
  require(count < (std::size_t{1} << 31), "there are too many splits");
  for (std::size_t s = 0; s < count; ++s) {
    require(column(s) < columns && side(s) < 2, "a split's column or side is out of range");
    if (depth(s) == 0) {
      splits.starts.push_back(s);
      continue;
    }
    require(!splits.starts.empty() && splits.starts.back() <= parent(s) && parent(s) < s &&
                depth(parent(s)) + 1 == depth(s),
            "a parent must come before its child, in the same tree");
    splits.levels = std::max<std::size_t>(splits.levels, depth(s) + std::size_t{1});
  }
  splits.starts.push_back(count);
  std::vector<std::uint32_t> next(columns + 1);
  for (std::size_t s = 0; s < count; ++s) ++next[column(s) + 1];
  for (std::size_t j = 1; j < next.size(); ++j) next[j] += next[j - 1];
  for (std::size_t s = 0; s < count; ++s) splits.rank.push_back(next[column(s)]++);
  for (std::size_t t = 0; t < splits.trees(); ++t) {
    splits.largest = std::max(splits.largest, splits.starts[t + 1] - splits.starts[t]);
  }
  return splits;
}

}  // namespace

void add_splits(nb::module_& module) {
  nb::class_<Splits>(module, "Splits")
      .def("__init__",
           [](Splits* self, std::size_t columns, Places depth, Flags has_leaf, Places column, Places parent,
              Places side, Array<const double, 3> leaves) {
             new (self) Splits(checked(columns, depth, has_leaf, column, parent, side, leaves));
           },
           nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
           nb::arg().noconvert(), nb::arg().noconvert());
}

}  // namespace limes
