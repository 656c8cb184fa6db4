// Contributions of columns to the change of a forest's value from one row to another: Shapley values of the game
// v(S) = f(row_S, other_rest).
//
// Down a tree a column is undecided until a test sends the two rows to different sides. From there on its path is that of
// one of them: of the row (the column is in X), or of the other one (in Y). A leaf counts in v(S) if X lies in S and Y
// outside, so that with x = |X|, y = |Y|
//
//     columns of X gain  value (x - 1)! y! / (x + y)!,     columns of Y lose  value x! (y - 1)! / (x + y)!,
//
// alone, {j} = X gains, and Y loses where X is empty; last, X gains where Y is empty, and {j} = Y loses. Subtrees that
// only rows with both values of a column would reach are never met: this visits the leaves of mixtures alone.

#include <cstdint>
#include <vector>

#include "arrays.h"
#include "kernels.h"
#include "trees.h"

namespace limes {
namespace {

constexpr std::size_t kMostParted = 1024;

class BetweenRows {
 public:
  BetweenRows(const Trees& trees, Matrix value, const double* row, const double* other, double* base, double* sums)
      : trees_(trees),
        value_(value),
        row_(row),
        other_(other),
        base_(base),
        sums_(sums),
        columns_(trees.columns()),
        outputs_(value.shape(1)),
        whose_(columns_, kUndecided) {}

  void add(std::size_t root) { go_down(root, 0); }

 private:
  enum Whose : std::uint8_t { kUndecided, kRow, kOther };

  void go_down(std::size_t node, std::size_t level) {
    while (trees_.is_split(node)) {
      const std::size_t j = trees_.column(node);
      const Whose whose = whose_[j];
      // a column that is decided has one value
      const bool left = trees_.goes_left(node, whose == kOther ? other_[j] : row_[j]);
      if (whose == kUndecided && trees_.goes_left(node, other_[j]) != left) {
        require(level < kMostParted, "a path has more than 1024 splits at which two rows part");
        whose_[j] = kRow;
        x_.push_back(j);
        go_down(trees_.child(node, left), level + 1);
        x_.pop_back();
        whose_[j] = kOther;
        y_.push_back(j);
        go_down(trees_.child(node, !left), level + 1);
        y_.pop_back();
        whose_[j] = kUndecided;
        return;
      }
      node = trees_.child(node, left);
    }
    add_leaf(node);
  }

  void add_leaf(std::size_t node) {
    const double* value = value_.data() + node * outputs_;
    const std::size_t x = x_.size(), y = y_.size();
    if (x == 0) {
      for (std::size_t k = 0; k < outputs_; ++k) base_[k] += value[k];
    }
    const double gain = x > 0 ? share(x, y) : 0.0, loss = y > 0 ? share(y, x) : 0.0;
    for (const std::size_t j : x_) add_to(j, value, gain, x == 1 ? 1.0 : 0.0, y == 0 ? 1.0 : 0.0);
    for (const std::size_t j : y_) add_to(j, value, -loss, x == 0 ? -1.0 : 0.0, y == 1 ? -1.0 : 0.0);
  }

  void add_to(std::size_t j, const double* value, double share, double alone, double last) {
    double* const of_column = sums_ + j * outputs_;
    const std::size_t quantity = columns_ * outputs_;
    for (std::size_t k = 0; k < outputs_; ++k) {
      of_column[k] += share * value[k];
      of_column[quantity + k] += alone * value[k];
      of_column[2 * quantity + k] += last * value[k];
    }
  }

  // (x - 1)! y! / (x + y)!, x > 0
  double share(std::size_t x, std::size_t y) {
    if (x >= kTable || y >= kTable) return computed(x, y);
    double& known = shares_[x * kTable + y];
    if (known == 0.0) known = computed(x, y);
    return known;
  }

  static double computed(std::size_t x, std::size_t y) {
    double share = 1.0 / static_cast<double>(x);
    for (std::size_t i = 0; i < y; ++i) share *= static_cast<double>(i + 1) / static_cast<double>(x + i + 1);
    return share;
  }

  static constexpr std::size_t kTable = 24;

  const Trees& trees_;
  Matrix value_;
  const double *row_, *other_;
  double *base_, *sums_;
  std::size_t columns_, outputs_;
  std::vector<Whose> whose_;
  std::vector<std::size_t> x_, y_;
  std::vector<double> shares_ = std::vector<double>(kTable * kTable, 0.0);
};

// Add to base (rows, outputs) and sums (rows, 3, columns, outputs) what all trees contribute: the values, alone, and
// last, from the other row (columns,) to rows x (rows, columns).
void add_between(const Trees& trees, Matrix value, Matrix x, Vector other, MatrixOut base, Array<double, 4> sums) {
  const std::size_t columns = trees.columns(), rows = x.shape(0), outputs = value.shape(1);
  require(value.shape(0) == trees.size(), "value must be (nodes, outputs)");
  require(x.shape(1) == columns && other.size() == columns, "x must be (rows, columns) and other (columns,)");
  require(base.shape(0) == rows && base.shape(1) == outputs && sums.shape(0) == rows && sums.shape(1) == 3 &&
              sums.shape(2) == columns && sums.shape(3) == outputs,
          "base must be (rows, outputs) and sums (rows, 3, columns, outputs)");
  for (std::size_t row = 0; row < rows; ++row) {
    BetweenRows between(trees, value, x.data() + row * columns, other.data(), base.data() + row * outputs,
                        sums.data() + row * 3 * columns * outputs);
    for (const std::size_t root : trees.roots()) between.add(root);
  }
}

}  // namespace

void add_between_rows(nb::module_& module) { define(module, "add_between", &add_between); }

}  // namespace limes
