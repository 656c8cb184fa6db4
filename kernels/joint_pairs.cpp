// Pairs of columns of a forest under the joint law: Shapley interaction indices of the game of joint_contributions.cpp.
//
// With X and Y of a leaf against one background row b, of x and y columns, the leaf's game is that of "X lies in S and Y
// outside", with the multilinear extension t^x (1 - t)^y, so that a pair of columns has value w_b times
//
//     both of X:       (x - 2)! y! / (x + y - 1)!,
//     one of each:    -(x - 1)! (y - 1)! / (x + y - 1)!,
//     both of Y:       x! (y - 2)! / (x + y - 1)!.
//
// A row has one Y, and background rows one X a segment, as there.

#include <cstdint>
#include <vector>

#include "arrays.h"
#include "bits.h"
#include "joint_gains.h"
#include "joint_segments.h"
#include "kernels.h"
#include "trees.h"

namespace limes {
namespace {

class JointPairs : public JointDescent<JointPairs> {
 public:
  JointPairs(const Trees& trees, Matrix value, Matrix x, Matrix background, Matrix weights, Array<double, 4> pairs)
      : JointDescent(trees, x, background), value_(value), weights_(weights), pairs_(pairs),
        size_(background.shape(1)), shared_(weights.shape(0) == 1) {}

 private:
  friend JointDescent<JointPairs>;

  void add_leaf(std::size_t node, std::size_t level) {
    const std::vector<Segment>& background = background_.at(level);
    for (const Segment& rows : rows_.at(level)) {
      for (const std::uint32_t* row = rows.begin; row != rows.end; ++row) {
        const double* weights = weights_.data() + (shared_ ? 0 : *row * size_);
        add_row(rows.failed, background, weights);
        write(node, *row);
      }
    }
  }

  // Indices of the path's pairs by a leaf of value 1, for a row that is outside the intervals of `failed`.
  void add_row(std::uint64_t failed, const std::vector<Segment>& background, const double* weights) {
    const std::size_t y = count_bits(failed);
    touched_ = failed;
    std::fill_n(of_.begin(), used_ * kPathColumns, 0.0);
    double outside = 0.0;  // of two columns of Y
    for (const Segment& segment : background) {
      if ((failed & segment.failed) != 0) continue;
      const std::uint64_t only = segment.failed;
      const std::size_t x = count_bits(only);
      if (x + y < 2) continue;
      const double weight = sum(segment, weights);
      touched_ |= only;
      if (y > 1) outside += weight * shares_(y - 1, x);
      for (std::uint64_t rest = only; rest != 0; rest &= rest - 1) {
        const std::size_t i = lowest_bit(rest);
        if (y > 0) add_to(i, failed, -weight * shares_(x, y - 1));
        if (x > 1) add_to(i, rest & (rest - 1), weight * shares_(x - 1, y));
      }
    }
    for (std::uint64_t rest = failed; rest != 0; rest &= rest - 1) {
      add_to(lowest_bit(rest), rest & (rest - 1), outside);
    }
  }

  void add_to(std::size_t i, std::uint64_t others, double index) {
    for (; others != 0; others &= others - 1) of_[i * kPathColumns + lowest_bit(others)] += index;
  }

  void write(std::size_t node, std::size_t row) {
    const double* value = value_.data() + node * value_.shape(1);
    for (std::uint64_t rows = touched_; rows != 0; rows &= rows - 1) {
      const std::size_t i = lowest_bit(rows);
      for (std::uint64_t rest = touched_; rest != 0; rest &= rest - 1) {
        const std::size_t j = lowest_bit(rest);
        const double index = of_[i * kPathColumns + j];
        if (index == 0.0) continue;
        for (std::size_t k = 0; k < value_.shape(1); ++k) {
          pairs_(row, column_of_[i], column_of_[j], k) += index * value[k];
          pairs_(row, column_of_[j], column_of_[i], k) += index * value[k];
        }
      }
    }
  }

  Matrix value_, weights_;
  Array<double, 4> pairs_;
  std::size_t size_;
  bool shared_;
  const Shares& shares_ = Shares::table();
  // at a leaf: indices of pairs of the path's columns, and which of these have any
  std::array<double, kPathColumns * kPathColumns> of_{};
  std::uint64_t touched_ = 0;
};

// Add to pairs (rows, columns, columns, outputs), which are symmetric, what trees contribute. x is (columns, rows),
// background (columns, size), weights (rows, size), or (1, size) where rows share them.
void add_joint_pair_sums(const Trees& trees, Matrix value, std::size_t first, std::size_t end, Matrix x,
                         Matrix background, Matrix weights, Array<double, 4> pairs) {
  const std::size_t columns = trees.columns(), rows = x.shape(1);
  require(value.shape(0) == trees.size(), "value must be (nodes, outputs)");
  require(first <= end && end <= trees.roots().size(), "there are no such trees");
  require(x.shape(0) == columns && background.shape(0) == columns, "x and background must be (columns, rows)");
  require(rows <= 0xFFFFFFFF && background.shape(1) <= 0xFFFFFFFF, "there are too many rows");
  require((weights.shape(0) == rows || weights.shape(0) == 1) && weights.shape(1) == background.shape(1),
          "weights must be (rows or 1, background)");
  require(pairs.shape(0) == rows && pairs.shape(1) == columns && pairs.shape(2) == columns &&
              pairs.shape(3) == value.shape(1),
          "pairs must be (rows, columns, columns, outputs)");
  if (rows == 0 || background.shape(1) == 0) return;
  // no `FlushToZero`: thresholds may be the numbers next to 0
  JointPairs joint(trees, value, x, background, weights, pairs);
  for (std::size_t tree = first; tree < end; ++tree) joint.add(trees.roots()[tree]);
}

}  // namespace

void add_joint_pairs(nb::module_& module) { define(module, "add_joint_pairs", &add_joint_pair_sums); }

}  // namespace limes
