// Explained rows and background rows that go down a tree together, as segments (joint_contributions.cpp has the formulas).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "arrays.h"
#include "joint_gains.h"
#include "trees.h"

namespace limes {

// Splits on a path: each is a call inside the one above.
constexpr std::size_t kDeepest = 1024;

// Rows that are outside the same intervals of a path: those of `failed`.
struct Segment {
  std::uint64_t failed;
  const std::uint32_t *begin, *end;
};

// Rows of one kind, explained ones or the background's, on the way down.
class Side {
 public:
  // x is (columns, count).
  Side(const double* x, std::size_t count) : x_(x), count_(count), levels_(1) {
    levels_[0].rows.resize(count);
    for (std::size_t i = 0; i < count; ++i) levels_[0].rows[i] = static_cast<std::uint32_t>(i);
  }

  void start() {
    const std::uint32_t* rows = levels_[0].rows.data();
    levels_[0].segments.assign(1, {0, rows, rows + count_});
  }

  std::vector<Segment>& at(std::size_t level) { return levels_[level].segments; }

  // Part the segments of a level by a node's test of the column that has this bit.
  void part(const Trees& trees, std::size_t node, std::size_t level, std::uint64_t bit) {
    if (levels_.size() == level + 1) levels_.emplace_back();
    Level &now = levels_[level], &next = levels_[level + 1];
    std::size_t count = 0;
    for (const Segment& segment : now.segments) {
      if (!(segment.failed & bit)) count += static_cast<std::size_t>(segment.end - segment.begin);
    }
    // one place more, to which a step without a branch may write
    next.rows.resize(std::max(next.rows.size(), count + 1));
    now.parts.clear();
    const double* x = x_ + trees.column(node) * count_;
    std::uint32_t* to = next.rows.data();
    for (const Segment& segment : now.segments) {
      if (segment.failed & bit) {
        now.parts.push_back({segment.failed, segment.begin, segment.end, segment.end, true});
        continue;
      }
      // those that go left are written upwards, the others wait
      std::uint32_t *const begin = to, *wait = waiting(segment.end - segment.begin);
      for (const std::uint32_t* row = segment.begin; row != segment.end; ++row) {
        const bool left = trees.goes_left(node, x[*row]);
        *to = *wait = *row;
        to += left;
        wait += !left;
      }
      std::uint32_t* const middle = to;
      to = std::copy(waiting_.data(), wait, to);
      now.parts.push_back({segment.failed, begin, middle, to, false});
    }
  }

  // The segments below one side of the test that parted a level's.
  void go(std::size_t level, bool left, std::uint64_t bit) {
    std::vector<Segment>& below = levels_[level + 1].segments;
    below.clear();
    for (const Part& part : levels_[level].parts) {
      if (part.whole) {
        below.push_back({part.failed, part.begin, part.end});
        continue;
      }
      const Segment sides[2] = {{part.failed, part.middle, part.end}, {part.failed, part.begin, part.middle}};
      const Segment &in = sides[left], &out = sides[!left];
      if (in.begin != in.end) below.push_back(in);
      if (out.begin != out.end) below.push_back({out.failed | bit, out.begin, out.end});
    }
  }

 private:
  struct Part {
    std::uint64_t failed;
    const std::uint32_t *begin, *middle, *end;
    bool whole;
  };
  struct Level {
    std::vector<std::uint32_t> rows;
    std::vector<Segment> segments;
    std::vector<Part> parts;
  };

  std::uint32_t* waiting(std::ptrdiff_t count) {
    waiting_.resize(std::max(waiting_.size(), static_cast<std::size_t>(count) + 1));
    return waiting_.data();
  }

  const double* x_;
  std::size_t count_;
  std::deque<Level> levels_;  // which segments point into, and which must not move
  std::vector<std::uint32_t> waiting_;
};

// Drop the segments that meet none of the others: at each column of the path one of the two rows must be in.
inline void drop(std::vector<Segment>& segments, const std::vector<Segment>& others) {
  // most of the time some rows are in all intervals, and meet all others
  if (std::any_of(others.begin(), others.end(), [](const Segment& other) { return other.failed == 0; })) return;
  const auto meets_none = [&](const Segment& segment) {
    return std::none_of(others.begin(), others.end(),
                        [&](const Segment& other) { return (segment.failed & other.failed) == 0; });
  };
  segments.erase(std::remove_if(segments.begin(), segments.end(), meets_none), segments.end());
}

// The way of both kinds of rows down trees. `add_leaf(node, level)` of the derived class is called at every leaf that a pair
// of rows reaches; bits of masks are the path's columns.
template <typename Derived>
class JointDescent {
 public:
  // x and background are (columns, rows).
  JointDescent(const Trees& trees, Matrix x, Matrix background)
      : trees_(trees), rows_(x.data(), x.shape(1)), background_(background.data(), background.shape(1)),
        bit_of_(trees.columns(), kPathColumns) {}

  void add(std::size_t root) {
    rows_.start();
    background_.start();
    go_down(root, 0);
  }

 protected:
  const Trees& trees_;
  Side rows_, background_;
  // the path's columns, and the bit of each column, kPathColumns where it has none
  std::array<std::size_t, kPathColumns> column_of_{};
  std::vector<std::size_t> bit_of_;
  std::size_t used_ = 0;

  static double sum(const Segment& segment, const double* weights) {
    double sum = 0.0;
    for (const std::uint32_t* row = segment.begin; row != segment.end; ++row) sum += weights[*row];
    return sum;
  }

 private:
  void go_down(std::size_t node, std::size_t level) {
    if (!trees_.is_split(node)) {
      static_cast<Derived*>(this)->add_leaf(node, level);
      return;
    }
    require(level < kDeepest, "a path has more than 1024 splits");
    const std::size_t j = trees_.column(node);
    const bool is_first = bit_of_[j] == kPathColumns;
    if (is_first) {
      require(used_ < kPathColumns, "a path has more than 64 columns");
      column_of_[used_] = j;
      bit_of_[j] = used_++;
    }
    const std::uint64_t bit = std::uint64_t{1} << bit_of_[j];
    rows_.part(trees_, node, level, bit);
    background_.part(trees_, node, level, bit);
    for (const bool left : {true, false}) {
      rows_.go(level, left, bit);
      background_.go(level, left, bit);
      std::vector<Segment> &rows = rows_.at(level + 1), &background = background_.at(level + 1);
      drop(background, rows);
      drop(rows, background);
      if (!rows.empty()) go_down(trees_.child(node, left), level + 1);
    }
    if (is_first) {
      bit_of_[j] = kPathColumns;
      --used_;
    }
  }
};

}  // namespace limes
