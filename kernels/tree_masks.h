// Many rows at a time down the trees of a forest: sets of rows in place of single ones.
//
// A block of rows is a mask of bits. The rows that a split sends left are the same for all splits between the same two
// values of a column, so that a block has few such masks; a node's rows are those of its parent and its mask, and
// what no row reaches is not looked at. Leaves are added in the order of the trees, as a walk of each row adds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trees.h"

namespace limes {

// The distinct thresholds of each column, ascending, and where each node's lies among them.
struct Thresholds {
  explicit Thresholds(const Trees& trees);

  std::vector<double> values;
  std::vector<std::size_t> starts;     // first threshold of each column, and the end of the last one
  std::vector<std::uint32_t> of_node;  // 1 + position in `values`; 0 where nothing is below the threshold
};

// Add the leaf values (nodes, outputs) of rows (count, width) to total (count, outputs).
void add_by_masks(const Trees& trees, const Thresholds& thresholds, const double* x, std::size_t count,
                  std::size_t width, const double* value, std::size_t outputs, double* total);

}  // namespace limes
