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
  // A split as single rows read it. Rows that do not lie in the interval above it go left.
  struct Record {
    static constexpr std::uint32_t kHasLeaf = 1, kIsLast = 2, kMissingLeft = 4;
    std::uint32_t column;
    std::uint32_t upper;  // a row in the interval above goes left up to this rank, or if it is in this set
    std::uint32_t rank;   // that of `Splits`
    std::uint32_t edge;   // the edge above it, 2 * level of the parent + side, roots being of level 1; 0 at a root
    std::uint32_t same;   // the last edge above on the same column, so counted; 0 without one
    std::uint32_t flags;  // has a leaf; two of them; missing values go left
  };
  static constexpr std::size_t kAhead = 12;  // so far ahead of a split probabilities are asked for

  std::vector<Split> splits;
  std::vector<Record> records;     // of the splits, and kAhead more that nothing walks
  std::vector<std::size_t> start;  // (columns + 1,), first rank of each column

  std::size_t ranks() const { return start.back(); }
};

}  // namespace limes
