// Nodes of a forest, and where one sends a value.
#pragma once

#include <cmath>

#include "arrays.h"

namespace limes {

struct Nodes {
  Integers feature;   // -1 at leaves
  Vector threshold;
  Integers left, right;
  Integers set_of;    // row of `sets`, -1 where the split is by threshold
  Array<const bool, 2> sets;

  bool is_split(std::size_t node) const { return feature.data()[node] >= 0; }
  std::size_t column(std::size_t node) const { return static_cast<std::size_t>(feature.data()[node]); }
  std::size_t child(std::size_t node, bool goes_left) const {
    return static_cast<std::size_t>((goes_left ? left : right).data()[node]);
  }
  // Where a split sends x, which is not missing.
  bool goes_left(std::size_t node, double x) const {
    const std::int64_t set = set_of.data()[node];
    if (set < 0) return x <= threshold.data()[node];
    const bool is_code = 0.0 <= x && x < static_cast<double>(sets.shape(1)) && x == std::floor(x);
    return is_code && sets(static_cast<std::size_t>(set), static_cast<std::size_t>(x));
  }

  // Children come after their parents in no fixed order, so that only their range can be checked.
  void check(std::size_t columns) const {
    const auto count = static_cast<std::int64_t>(feature.size());
    require(threshold.size() == feature.size() && left.size() == feature.size() && right.size() == feature.size() &&
                set_of.size() == feature.size(),
            "nodes must have one length");
    for (std::size_t i = 0; i < feature.size(); ++i) {
      if (feature(i) < 0) continue;
      require(feature(i) < static_cast<std::int64_t>(columns), "a node splits a column that is not there");
      require(0 <= left(i) && left(i) < count && 0 <= right(i) && right(i) < count, "a child is no node");
      require(set_of(i) < static_cast<std::int64_t>(sets.shape(0)), "a split's set is not there");
    }
  }
};

}  // namespace limes
