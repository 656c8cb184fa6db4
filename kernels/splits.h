// Splits of a forest, depth first, checked when they are taken over. Files for one set of instructions include this:
// it knows no array of Python's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace limes {

// Loops over splits check nothing: columns exist, and parents lie before their children and in the same tree. Each
// split has its column, the split above, the side of it that it lies on, and the values of its two children, 0 where a
// child is a split.
struct Splits {
  std::size_t columns = 0, outputs = 0, levels = 1, largest = 0;  // levels of the deepest tree, splits of the largest
  std::vector<std::uint32_t> depth, column, parent;
  std::vector<std::uint32_t> rank;   // how many splits are of columns before, or of the same one and earlier
  std::vector<std::uint8_t> side, has_leaf;
  std::vector<double> leaves;        // (count, 2, outputs)
  std::vector<std::size_t> starts;   // first split of each tree, and the end of the last one

  std::size_t count() const { return depth.size(); }
  std::size_t trees() const { return starts.size() - 1; }
};

}  // namespace limes
