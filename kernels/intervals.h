// The intervals of a forest's edges, as ranks of thresholds: which values of its column reach a child.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace limes {

// Ranks count the indicators of all columns, one column after the other. Those of a column are 0, 1[x <= threshold] with
// thresholds ascending, 1[present] and 1[missing]; of one that is split by sets they are the sets, between two empty ones.
// A value lies in an edge's interval if the indicator `upper` less the indicator `lower`, and plus the last one of the
// column where `missing`, is 1.
struct Intervals {
  struct Side {
    std::uint32_t lower, upper;
    bool missing;
  };
  struct Split {
    std::int32_t same;   // 2 * split + side of the last edge above on the same column, or -1
    std::uint32_t last;  // rank of "missing"
    Side sides[2];
  };
  std::vector<Split> splits;
  std::vector<std::size_t> start;  // (columns + 1,), first rank of each column

  std::size_t ranks() const { return start.back(); }
};

}  // namespace limes
