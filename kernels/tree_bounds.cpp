// The least and the largest leaf of each tree that a box of rows reaches.
//
// A box has for each column the numbers in (lower, upper], and whether a value may be missing; a column that is split
// by sets has codes, the last of which stands for all other numbers. On the way down intervals become narrower. A tree
// whose box reaches both sides of a split is undecided: its first such split is where a search may cut the box.

#include <algorithm>
#include <vector>

#include "arrays.h"
#include "kernels.h"
#include "trees.h"

namespace limes {
namespace {

struct Range {
  double lower, upper;
  bool missing;
};

class Walk {
 public:
  Walk(const Trees& trees, Array<const bool, 2> codes, std::vector<Range> box) : trees_(trees), codes_(codes), box_(std::move(box)) {}

  // Call leaf(node) for each leaf that is reached; return the first split whose two sides are, or -1.
  template <typename Leaf>
  std::int64_t go_down(std::size_t root, const Leaf& leaf) {
    std::int64_t undecided = -1;
    pending_.push_back({root, kNoColumn, {}});
    while (!pending_.empty()) {
      const Step step = pending_.back();
      pending_.pop_back();
      if (step.column != kNoColumn) box_[step.column] = step.range;
      if (step.node == kNoNode) continue;
      if (!trees_.is_split(step.node)) {
        leaf(step.node);
        continue;
      }
      const std::size_t j = trees_.column(step.node);
      const Range range = box_[j];
      const bool left = reaches(step.node, range, true), right = reaches(step.node, range, false);
      if (left && right && undecided < 0) undecided = static_cast<std::int64_t>(step.node);
      // the last one pushed is the first one done: left, right, and the column as it was
      pending_.push_back({kNoNode, j, range});
      if (right) pending_.push_back({trees_.child(step.node, false), j, narrowed(step.node, range, false)});
      if (left) pending_.push_back({trees_.child(step.node, true), j, narrowed(step.node, range, true)});
    }
    return undecided;
  }

 private:
  static constexpr std::size_t kNoNode = ~std::size_t{0}, kNoColumn = ~std::size_t{0};
  struct Step {
    std::size_t node, column;
    Range range;
  };

  bool reaches(std::size_t node, const Range& range, bool left) const {
    if (range.missing && trees_.missing_left(node) == left) return true;
    if (!trees_.is_by_set(node)) {
      const double cut = trees_.threshold(node);
      return range.lower < range.upper && (left ? range.lower < cut : range.upper > cut);
    }
    const std::size_t j = trees_.column(node), others = trees_.codes();
    for (std::size_t code = 0; code < others; ++code) {
      if (codes_(j, code) && trees_.in_set(node, code) == left) return true;
    }
    return !left && codes_(j, others);
  }

  Range narrowed(std::size_t node, Range range, bool left) const {
    range.missing = range.missing && trees_.missing_left(node) == left;
    if (trees_.is_by_set(node)) return range;
    if (left) {
      range.upper = std::min(range.upper, trees_.threshold(node));
    } else {
      range.lower = std::max(range.lower, trees_.threshold(node));
    }
    return range;
  }

  const Trees& trees_;
  Array<const bool, 2> codes_;
  std::vector<Range> box_;
  std::vector<Step> pending_;
};

// ends (d, 2), missing (d,), codes (d, L + 1), value (nodes,); bounds (2, T) and undecided (T,) are written.
void bound_leaves(const Trees& trees, Matrix ends, Flags missing, Array<const bool, 2> codes, Vector value,
                  MatrixOut bounds, Array<std::int64_t, 1> undecided) {
  const std::size_t columns = trees.columns(), count = trees.roots().size();
  require(ends.shape(0) == columns && ends.shape(1) == 2 && missing.size() == columns && codes.shape(0) == columns &&
              codes.shape(1) == trees.codes() + 1,
          "a box must be (columns, 2), (columns,) and (columns, codes + 1)");
  require(value.size() == trees.size(), "value must be (nodes,)");
  require(bounds.shape(0) == 2 && bounds.shape(1) == count && undecided.size() == count,
          "bounds must be (2, trees) and undecided (trees,)");
  std::vector<Range> box;
  for (std::size_t j = 0; j < columns; ++j) box.push_back({ends(j, 0), ends(j, 1), missing(j)});
  Walk walk(trees, codes, std::move(box));
  for (std::size_t t = 0; t < count; ++t) {
    double low = 0.0, high = 0.0;
    bool any = false;
    undecided(t) = walk.go_down(trees.roots()[t], [&](std::size_t node) {
      low = any ? std::min(low, value(node)) : value(node);
      high = any ? std::max(high, value(node)) : value(node);
      any = true;
    });
    bounds(0, t) = low;
    bounds(1, t) = high;
  }
}

}  // namespace

void add_tree_bounds(nb::module_& module) { define(module, "bound_leaves", &bound_leaves); }

}  // namespace limes
