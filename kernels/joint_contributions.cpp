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

class Joint : public JointDescent<Joint> {
 public:
  Joint(const Trees& trees, Matrix value, Matrix x, Matrix background, Matrix weights, MatrixOut base,
        Array<double, 4> sums)
      : JointDescent(trees, x, background), value_(value), weights_(weights), base_(base), sums_(sums),
        size_(background.shape(1)), outputs_(value.shape(1)), shared_(weights.shape(0) == 1),
        total_(x.shape(1) * trees.columns() * value.shape(1)) {}

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
  friend JointDescent<Joint>;

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

  Matrix value_, weights_;
  MatrixOut base_;
  Array<double, 4> sums_;
  std::size_t size_, outputs_;
  bool shared_;
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
