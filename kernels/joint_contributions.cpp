// Contributions of columns to a forest's value under the joint law: Shapley values of the game
// v(S) = sum over b of w_b f(row_S, b_rest), whose b are background rows with weights that depend on the explained row.
//
// On the path to a leaf a column has an interval. Against one background row b, let X be the path's columns whose
// interval holds the row's value but not b's, and Y those where it is the other way round; where neither is in, b says
// nothing here. Then the leaf counts in v(S) if X lies in S and Y outside, and with x = |X|, y = |Y| (Lundberg et al. 2020)
//
//     columns of X gain  value w_b (x - 1)! y! / (x + y)!,     columns of Y lose  value w_b x! (y - 1)! / (x + y)!.
//
// Rows that fail the same columns of a path go down together, as one segment: on the way down every segment is parted by
// each test, once for all rows. At a leaf a pair of segments, one of explained rows and one of background rows, has one X
// and one Y (Nadel & Wettenstein 2025), and all that is left to do for a row is to add up the weights of a segment. What meets
// nothing on the other side is dropped. Lists keep the order of their rows, so that a row's sums are the same bits
// whatever rows are beside it.

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "arrays.h"
#include "bits.h"
#include "joint_gains.h"
#include "kernels.h"
#include "trees.h"

namespace limes {
namespace {

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
void drop(std::vector<Segment>& segments, const std::vector<Segment>& others) {
  // most of the time some rows are in all intervals, and meet all others
  if (std::any_of(others.begin(), others.end(), [](const Segment& other) { return other.failed == 0; })) return;
  const auto meets_none = [&](const Segment& segment) {
    return std::none_of(others.begin(), others.end(),
                        [&](const Segment& other) { return (segment.failed & other.failed) == 0; });
  };
  segments.erase(std::remove_if(segments.begin(), segments.end(), meets_none), segments.end());
}

class Joint {
 public:
  Joint(const Trees& trees, Matrix value, Matrix x, Matrix background, Matrix weights, MatrixOut base,
        Array<double, 4> sums)
      : trees_(trees), value_(value), weights_(weights), base_(base), sums_(sums),
        rows_(x.data(), x.shape(1)), background_(background.data(), background.shape(1)),
        size_(background.shape(1)), outputs_(value.shape(1)), shared_(weights.shape(0) == 1),
        bit_of_(trees.columns(), kPathColumns), total_(x.shape(1) * trees.columns() * value.shape(1)) {}

  void add(std::size_t root) {
    rows_.start();
    background_.start();
    go_down(root, 0);
  }

  void write() {
    const std::size_t columns = trees_.columns();
    for (std::size_t row = 0; row < sums_.shape(0); ++row) {
      const Gain* sums = &total_[row * columns * outputs_];
      for (std::size_t j = 0; j < columns; ++j) {
        for (std::size_t k = 0; k < outputs_; ++k, ++sums) {
          sums_(row, 0, j, k) += sums->value;
          sums_(row, 1, j, k) += sums->alone;
          sums_(row, 2, j, k) += sums->last;
        }
      }
    }
  }

 private:
  void go_down(std::size_t node, std::size_t level) {
    if (!trees_.is_split(node)) {
      add_leaf(node, level);
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

  void add_leaf(std::size_t node, std::size_t level) {
    const std::vector<Segment>& background = background_.at(level);
    weight_.resize(background.size());
    if (shared_) {
      for (std::size_t g = 0; g < background.size(); ++g) weight_[g] = sum(background[g], weights_.data());
    }
    for (const Segment& rows : rows_.at(level)) {
      std::size_t met = 0;
      met_.resize(background.size());
      for (std::size_t g = 0; g < background.size(); ++g) {
        met_[met] = g;
        met += (rows.failed & background[g].failed) == 0;
      }
      met_.resize(met);
      if (shared_) {
        add_up(rows.failed, background);
        for (const std::uint32_t* row = rows.begin; row != rows.end; ++row) write(node, *row);
        continue;
      }
      for (const std::uint32_t* row = rows.begin; row != rows.end; ++row) {
        const double* weights = weights_.data() + *row * size_;
        for (const std::size_t g : met_) weight_[g] = sum(background[g], weights);
        add_up(rows.failed, background);
        write(node, *row);
      }
    }
  }

  static double sum(const Segment& segment, const double* weights) {
    double sum = 0.0;
    for (const std::uint32_t* row = segment.begin; row != segment.end; ++row) sum += weights[*row];
    return sum;
  }

  void add_up(std::uint64_t failed, const std::vector<Segment>& background) {
    gains_.start(failed, used_);
    for (const std::size_t g : met_) {
      gains_.meet(background[g].failed, count_bits(background[g].failed), weight_[g]);
    }
    gains_.end();
  }

  void write(std::size_t node, std::size_t row) {
    const double* value = value_.data() + node * outputs_;
    for (std::size_t k = 0; k < outputs_; ++k) base_(row, k) += value[k] * gains_.none();
    Gain* const sums = &total_[row * trees_.columns() * outputs_];
    for (std::uint64_t rest = gains_.touched(); rest != 0; rest &= rest - 1) {
      const std::size_t at = lowest_bit(rest);
      Gain* const of_column = sums + column_of_[at] * outputs_;
      for (std::size_t k = 0; k < outputs_; ++k) of_column[k].add(gains_[at], value[k]);
    }
  }

  const Trees& trees_;
  Matrix value_, weights_;
  MatrixOut base_;
  Array<double, 4> sums_;
  Side rows_, background_;
  std::size_t size_, outputs_;
  bool shared_;
  // the path's columns, and the bit of each column, kPathColumns where it has none
  std::array<std::size_t, kPathColumns> column_of_{};
  std::vector<std::size_t> bit_of_;
  std::size_t used_ = 0;
  // at a leaf: weights of the background's segments, those that a segment of rows meets, and gains of columns
  std::vector<double> weight_;
  std::vector<std::size_t> met_;
  LeafGains gains_;
  std::vector<Gain> total_;  // (rows, columns, outputs)
};

// Add to base (rows, outputs) and sums (rows, 3, columns, outputs) what trees contribute: the values, alone, and last.
// x is (columns, rows), background (columns, size), weights (rows, size), or (1, size) where rows share them.
void add_joint_contributions(const Trees& trees, Matrix value, std::size_t first, std::size_t end, Matrix x,
                             Matrix background, Matrix weights, MatrixOut base, Array<double, 4> sums) {
  const std::size_t columns = trees.columns(), rows = x.shape(1), outputs = value.shape(1);
  require(value.shape(0) == trees.size(), "value must be (nodes, outputs)");
  require(first <= end && end <= trees.roots().size(), "there are no such trees");
  require(x.shape(0) == columns && background.shape(0) == columns, "x and background must be (columns, rows)");
  require(rows <= 0xFFFFFFFF && background.shape(1) <= 0xFFFFFFFF, "there are too many rows");
  require((weights.shape(0) == rows || weights.shape(0) == 1) && weights.shape(1) == background.shape(1),
          "weights must be (rows or 1, background)");
  require(base.shape(0) == rows && base.shape(1) == outputs && sums.shape(0) == rows && sums.shape(1) == 3 &&
              sums.shape(2) == columns && sums.shape(3) == outputs,
          "base must be (rows, outputs) and sums (rows, 3, columns, outputs)");
  if (rows == 0 || background.shape(1) == 0) return;
  // no `FlushToZero`: thresholds may be the numbers next to 0
  Joint joint(trees, value, x, background, weights, base, sums);
  for (std::size_t tree = first; tree < end; ++tree) joint.add(trees.roots()[tree]);
  joint.write();
}

}  // namespace

void add_joint(nb::module_& module) { define(module, "add_joint_contributions", &add_joint_contributions); }

}  // namespace limes
