// What all passes for contributions and pairs of forests require of the rows and trees that they are given.
#pragma once

#include <algorithm>

#include "arrays.h"
#include "intervals.h"
#include "splits.h"

namespace limes {

// `width` is the number of laws of which the pass has masses.
inline void require_rows_and_trees(const Splits& splits, const Intervals& intervals, std::size_t width,
                                   const Array<const std::uint32_t, 2>& cells,
                                   const Array<const std::uint32_t, 2>& places, const Array<const bool, 2>& members,
                                   const Integers& first, const Places& trees) {
  const std::size_t rows = cells.shape(0), columns = splits.columns;
  require(intervals.splits.size() == splits.count(), "intervals must be those of the splits");
  require(cells.shape(1) == columns && places.shape(0) == rows && places.shape(1) == columns,
          "cells and places must be (rows, columns)");
  require(first.size() == columns && members.shape(1) == rows, "first must be (columns,) and members (sets, rows)");
  require(std::all_of(cells.data(), cells.data() + cells.size(), [&](std::uint32_t cell) { return cell < width; }),
          "a cell is out of range");
  require(std::all_of(trees.data(), trees.data() + trees.size(),
                      [&](std::uint32_t tree) { return tree < splits.trees(); }),
          "there is no such tree");
  for (std::size_t j = 0; j < columns; ++j) {
    if (first(j) < 0) continue;
    const auto offset = static_cast<std::size_t>(first(j));
    require(offset <= intervals.start[j] && intervals.start[j + 1] - offset <= members.shape(0),
            "members must have a row for each set");
  }
}

}  // namespace limes
