// What is kept of a background: see joint_background.h.

#include "joint_background.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "bits.h"
#include "joint_gains.h"
#include "kernels.h"
#include "tree_masks.h"

namespace limes {
namespace {

constexpr std::uint32_t kNoTable = 0xFFFFFFFF;
// A subtree has a table if it has `kFew` tests at most, or `kSmall` with those above it; and if there are no more tests and
// lines than these.
constexpr std::size_t kFew = 3, kSmall = 7, kTests = 12, kLines = 1024;
// Masks of a node, the least ones: with more of them rows are let through.
constexpr std::size_t kLeast = 16;
// Background rows above which those are merged that no test below tells apart; and tests below, and bits of these with the
// failed columns.
constexpr std::size_t kMerged = 2048, kBelow = 10, kBits = 16;
// The place of a missing value among a column's thresholds.
constexpr std::uint32_t kMissing = 0xFFFFFFFF;
// Masks that are counted in an array by themselves, where background rows are not fewer.
constexpr std::size_t kCounted = 16;

}  // namespace

// Takes the background down each tree once.
class JointBuilder {
 public:
  JointBuilder(JointBackground& to, Matrix value, Matrix background)
      : to_(to), trees_(to.trees_), value_(value), background_(background), size_(background.shape(1)),
        ranks_(trees_.columns() * size_), all_(size_, 0) {
    for (std::size_t j = 0; j < trees_.columns(); ++j) rank(j);
  }

  void build(std::size_t first, std::size_t end, double bytes);

 private:
  // A tree's nodes in preorder.
  struct Plan {
    std::uint32_t node, right, subtree;  // which candidate for a table it is the root of
    bool has_table, walks;               // whether one is at or below it, and a leaf without
  };
  struct Edge {
    std::uint32_t node;
    bool goes_left;
  };
  struct Subtree {
    std::vector<std::uint32_t> tests, columns;  // tests above it, from the root, then those in it in preorder
    std::size_t above = 0, lines = 0, bytes = 0;
  };

  // Background rows that fail the same columns and go the same ways below a node: one of them, and how many they are.
  struct Merged {
    std::vector<std::uint32_t> row, number, failed;
  };

  bool plan(std::uint32_t node, std::vector<Plan>& nodes, bool in_subtree);
  std::size_t splits_below(std::uint32_t node, std::size_t most) const;
  std::uint32_t candidate(std::uint32_t node);
  void collect(std::uint32_t node, std::vector<std::uint32_t>& tests) const;
  std::vector<std::uint32_t> patterns_of(const std::vector<std::uint32_t>& tests, std::uint32_t column) const;
  void choose(std::vector<std::vector<Plan>>& plans, double bytes);

  void add_tables(const std::vector<Plan>& plan, std::size_t at, std::uint32_t step, std::size_t level);
  void add_table(const Subtree& subtree, std::uint32_t node, std::uint32_t step, std::size_t level);
  std::vector<std::uint32_t> lines_of(const Subtree& subtree) const;
  void add_leaves(const Subtree& subtree, std::uint32_t node, const std::vector<std::uint32_t>& lines, double* to);
  void add_lines(const Subtree& subtree, std::uint32_t node, const std::vector<std::uint32_t>& lines, double* to);
  void add_masks(const std::vector<Plan>& plan, std::size_t at, std::size_t level, const std::uint32_t* above);
  void add_split(const std::vector<Plan>& plan, std::size_t at, std::size_t level, const std::uint32_t* above);
  void add_leaf(std::uint32_t node, const std::uint32_t* failed);
  Merged merged(const std::vector<std::uint32_t>& tests, const std::uint32_t* above);
  void count(const std::uint32_t* words, std::size_t bits);
  void keep_least(const std::uint32_t* failed);
  void take_back(const std::array<std::size_t, 3>& masks);
  void add_up(std::uint32_t mask, double* gains);
  void add_words();
  std::size_t rows() const { return merged_ == nullptr ? size_ : merged_->row.size(); }
  bool masks_fit() const { return static_cast<double>(to_.masks_.size() + to_.words_.size()) <= most_; }
  void add_base(std::uint32_t node, std::uint32_t number);

  bool push(std::uint32_t node);  // whether the column is new on the path
  void pop(bool is_new) { column_of_.resize(column_of_.size() - is_new), path_.pop_back(); }
  std::size_t bit_of(std::size_t column) const {
    return static_cast<std::size_t>(std::find(column_of_.begin(), column_of_.end(), column) - column_of_.begin());
  }
  void rank(std::size_t column);
  // Call use(i, whether background row i goes left) for all.
  template <typename Use>
  void outcomes(std::uint32_t node, const Use& use) const;

  JointBackground& to_;
  const Trees& trees_;
  Matrix value_, background_;
  std::size_t size_;
  std::vector<Subtree> subtrees_;
  std::vector<Edge> path_;
  std::vector<std::uint32_t> column_of_;  // the path's columns, by their bits
  std::vector<std::uint32_t> ranks_;      // (columns, size)
  std::vector<std::uint32_t> all_;        // of the root: no outcomes, and no failures
  std::deque<std::vector<std::uint32_t>> outcomes_, failed_;  // of background rows, by level
  std::vector<std::uint32_t> words_, numbers_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> counts_, present_, sorted_;  // words, and how many rows have each
  std::vector<double> of_failed_;                                // gains of a leaf's columns by what a row fails
  const Merged* merged_ = nullptr;  // in place of all background rows
  double most_ = 0.0;  // masks, and words of as many bits
  LeafGains gains_;
};

bool JointBuilder::push(std::uint32_t node) {
  const auto column = static_cast<std::uint32_t>(trees_.column(node));
  path_.push_back({node, true});
  const bool is_new = bit_of(column) == column_of_.size();
  if (is_new) column_of_.push_back(column);
  return is_new;
}

// Where background rows are among a column's thresholds: whole numbers are compared at each test.
void JointBuilder::rank(std::size_t column) {
  const Thresholds& thresholds = trees_.thresholds();
  const auto begin = thresholds.values.begin() + static_cast<std::ptrdiff_t>(thresholds.starts[column]);
  const auto end = thresholds.values.begin() + static_cast<std::ptrdiff_t>(thresholds.starts[column + 1]);
  for (std::size_t i = 0; i < size_; ++i) {
    const double x = background_(column, i);
    ranks_[column * size_ + i] =
        std::isnan(x) ? kMissing : static_cast<std::uint32_t>(std::lower_bound(begin, end, x) - begin);
  }
}

template <typename Use>
void JointBuilder::outcomes(std::uint32_t node, const Use& use) const {
  const std::size_t column = trees_.column(node);
  if (trees_.is_by_set(node)) {
    for (std::size_t i = 0; i < rows(); ++i) {
      const double x = background_(column, merged_ == nullptr ? i : merged_->row[i]);
      use(i, static_cast<std::uint32_t>(trees_.goes_left(node, x)));
    }
    return;
  }
  const std::uint32_t* ranks = ranks_.data() + column * size_;
  // one more than the threshold's place: 0 where nothing is below it
  const std::uint32_t of_node = trees_.thresholds().of_node[node];
  const auto end = static_cast<std::uint32_t>(of_node == 0 ? 0 : of_node - trees_.thresholds().starts[column]);
  const std::uint32_t missing = trees_.missing_left(node);
  const auto left = [=](std::uint32_t rank) {
    return static_cast<std::uint32_t>(rank < end) | (static_cast<std::uint32_t>(rank == kMissing) & missing);
  };
  if (merged_ == nullptr) {
    for (std::size_t i = 0; i < size_; ++i) use(i, left(ranks[i]));
  } else {
    const std::vector<std::uint32_t>& row = merged_->row;
    for (std::size_t i = 0; i < row.size(); ++i) use(i, left(ranks[row[i]]));
  }
}

// -- plans

void JointBuilder::build(std::size_t first, std::size_t end, double bytes) {
  std::vector<std::vector<Plan>> plans;
  std::size_t nodes = 0;
  while (first + plans.size() < end) {
    plans.emplace_back();
    path_.clear();
    column_of_.clear();
    if (!plan(trees_.roots()[first + plans.size() - 1], plans.back(), false)) {
      plans.pop_back();
      break;
    }
    nodes += plans.back().size();
  }
  // runs of trees of one forest share its bytes
  bytes *= static_cast<double>(nodes) / static_cast<double>(std::max<std::size_t>(1, trees_.size()));
  choose(plans, 0.5 * bytes);
  to_.end_ = first;
  for (const std::vector<Plan>& tree : plans) {
    to_.starts_.push_back({to_.steps_.size(), to_.tables_.size(), to_.nodes_.size(), to_.lines_.size()});
    const std::vector<double> base = to_.base_;
    const std::array<std::size_t, 3> masks = {to_.masks_.size(), to_.words_.size(), to_.least_.size()};
    most_ = bytes / sizeof(JointMask);
    add_tables(tree, 0, 0, 0);
    if (tree[0].walks) add_masks(tree, 0, 0, all_.data());
    if (!masks_fit()) {
      to_.base_ = base;
      take_back(masks);
      return;
    }
    ++to_.end_;
  }
  to_.starts_.push_back({to_.steps_.size(), to_.tables_.size(), to_.nodes_.size(), to_.lines_.size()});
}

// Forget the tree that began last.
void JointBuilder::take_back(const std::array<std::size_t, 3>& masks) {
  const auto& start = to_.starts_.back();
  to_.steps_.resize(start.step);
  to_.tables_.resize(start.table);
  to_.nodes_.resize(start.node);
  to_.lines_.resize(start.line);
  to_.masks_.erase(to_.masks_.begin() + static_cast<std::ptrdiff_t>(masks[0]), to_.masks_.end());
  to_.words_.resize(masks[1]);
  to_.least_.resize(masks[2]);
}

bool JointBuilder::plan(std::uint32_t node, std::vector<Plan>& nodes, bool in_subtree) {
  const std::size_t at = nodes.size(), above = path_.size();
  nodes.push_back({node, 0, kNoTable, false, false});
  if (!in_subtree) {
    const std::size_t inside = splits_below(node, kTests);
    in_subtree = above + inside <= kTests && (inside <= kFew || above + inside <= kSmall);
    if (in_subtree) nodes[at].subtree = candidate(node);
  }
  if (!trees_.is_split(node)) return true;
  const bool is_new = push(node);
  if (above >= kDeepest || column_of_.size() > JointMask::kColumns) return false;
  if (!plan(static_cast<std::uint32_t>(trees_.child(node, true)), nodes, in_subtree)) return false;
  nodes[at].right = static_cast<std::uint32_t>(nodes.size());
  path_.back().goes_left = false;
  if (!plan(static_cast<std::uint32_t>(trees_.child(node, false)), nodes, in_subtree)) return false;
  pop(is_new);
  return true;
}

// The number of splits at and below a node; where there are more than `most`, any number above.
std::size_t JointBuilder::splits_below(std::uint32_t node, std::size_t most) const {
  if (!trees_.is_split(node)) return 0;
  if (most == 0) return 1;
  const std::size_t some = 1 + splits_below(static_cast<std::uint32_t>(trees_.child(node, true)), most - 1);
  if (some > most) return some;
  return some + splits_below(static_cast<std::uint32_t>(trees_.child(node, false)), most - some);
}

std::uint32_t JointBuilder::candidate(std::uint32_t node) {
  Subtree subtree;
  for (const Edge& edge : path_) subtree.tests.push_back(edge.node);
  subtree.above = subtree.tests.size();
  collect(node, subtree.tests);
  for (const std::uint32_t test : subtree.tests) subtree.columns.push_back(static_cast<std::uint32_t>(trees_.column(test)));
  std::sort(subtree.columns.begin(), subtree.columns.end());
  subtree.columns.erase(std::unique(subtree.columns.begin(), subtree.columns.end()), subtree.columns.end());
  subtree.lines = 1;
  for (const std::uint32_t column : subtree.columns) {
    subtree.lines = std::min(kLines + 1, subtree.lines * patterns_of(subtree.tests, column).size());
  }
  const std::size_t line = 3 * subtree.columns.size() * to_.outputs_ * sizeof(double);
  subtree.bytes = subtree.lines * line + (std::size_t{1} << subtree.tests.size()) * sizeof(std::uint16_t);
  subtrees_.push_back(subtree);
  return static_cast<std::uint32_t>(subtrees_.size() - 1);
}

void JointBuilder::collect(std::uint32_t node, std::vector<std::uint32_t>& tests) const {
  if (!trees_.is_split(node)) return;
  tests.push_back(node);
  for (const bool left : {true, false}) collect(static_cast<std::uint32_t>(trees_.child(node, left)), tests);
}

// What a column's tests can say together: a value decides about all of them.
std::vector<std::uint32_t> JointBuilder::patterns_of(const std::vector<std::uint32_t>& tests, std::uint32_t column) const {
  std::vector<double> values = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
  bool has_codes = false;
  for (const std::uint32_t test : tests) {
    if (trees_.column(test) != column) continue;
    if (!trees_.is_by_set(test)) values.push_back(trees_.threshold(test));
    has_codes |= trees_.is_by_set(test);
  }
  for (std::size_t code = 0; has_codes && code <= trees_.codes(); ++code) values.push_back(static_cast<double>(code));
  std::vector<std::uint32_t> patterns;
  for (const double x : values) {
    std::uint32_t pattern = 0;
    for (const std::uint32_t test : tests) {
      pattern = pattern << 1 | static_cast<std::uint32_t>(trees_.column(test) == column && trees_.goes_left(test, x));
    }
    patterns.push_back(pattern);
  }
  std::sort(patterns.begin(), patterns.end());
  patterns.erase(std::unique(patterns.begin(), patterns.end()), patterns.end());
  return patterns;
}

// Which subtrees have a table: the smallest ones.
void JointBuilder::choose(std::vector<std::vector<Plan>>& plans, double bytes) {
  std::vector<std::uint32_t> order(subtrees_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t one, std::uint32_t other) {
    return subtrees_[one].bytes < subtrees_[other].bytes;
  });
  std::vector<bool> chosen(subtrees_.size(), false);
  double total = 0.0;
  std::size_t lines = 0, words = 0;
  for (const std::uint32_t each : order) {
    const Subtree& its = subtrees_[each];
    total += static_cast<double>(its.bytes);
    if (total > bytes) break;
    if (its.lines > kLines) continue;
    chosen[each] = true;
    lines += its.lines * its.columns.size() * to_.outputs_ * 3;
    words += std::size_t{1} << its.tests.size();
  }
  to_.lines_.reserve(lines);
  to_.line_of_.reserve(words);
  for (std::vector<Plan>& plan : plans) {
    for (auto node = plan.rbegin(); node != plan.rend(); ++node) {
      node->has_table = node->subtree != kNoTable && chosen[node->subtree];
      if (node->has_table) continue;
      node->subtree = kNoTable;
      node->walks = !trees_.is_split(node->node);
      if (node->walks) continue;
      const Plan &left = *(node - 1), &right = plan[node->right];
      node->has_table = left.has_table || right.has_table;
      node->walks = left.walks || right.walks;
    }
  }
}

// -- tables

void JointBuilder::add_tables(const std::vector<Plan>& plan, std::size_t at, std::uint32_t step, std::size_t level) {
  if (!plan[at].has_table) return;
  const std::uint32_t node = plan[at].node;
  if (plan[at].subtree != kNoTable) {
    add_table(subtrees_[plan[at].subtree], node, step, level);
    return;
  }
  to_.steps_.push_back({trees_.threshold(node), static_cast<std::uint32_t>(trees_.column(node)), node, step});
  step = static_cast<std::uint32_t>(to_.steps_.size() - to_.starts_.back().step);
  if (outcomes_.size() == level) outcomes_.emplace_back(size_);
  const std::uint32_t* above = level == 0 ? all_.data() : outcomes_[level - 1].data();
  std::uint32_t* below = outcomes_[level].data();
  outcomes(node, [=](std::size_t i, std::uint32_t left) { below[i] = above[i] << 1 | left; });
  const bool is_new = push(node);
  add_tables(plan, at + 1, step, level + 1);
  path_.back().goes_left = false;
  add_tables(plan, plan[at].right, step, level + 1);
  pop(is_new);
}

void JointBuilder::add_table(const Subtree& subtree, std::uint32_t node, std::uint32_t step, std::size_t level) {
  const std::size_t inside = subtree.tests.size() - subtree.above;
  to_.tables_.push_back({step, static_cast<std::uint32_t>(to_.tests_.size()), static_cast<std::uint32_t>(inside),
                         static_cast<std::uint32_t>(to_.columns_.size()),
                         static_cast<std::uint32_t>(subtree.columns.size()), to_.line_of_.size(), to_.lines_.size()});
  to_.columns_.insert(to_.columns_.end(), subtree.columns.begin(), subtree.columns.end());
  words_ = level == 0 ? all_ : outcomes_[level - 1];
  std::uint32_t* words = words_.data();
  for (std::size_t t = subtree.above; t < subtree.tests.size(); ++t) {
    const std::uint32_t test = subtree.tests[t];
    to_.tests_.push_back({trees_.threshold(test), static_cast<std::uint32_t>(trees_.column(test)), test, 0});
    outcomes(test, [=](std::size_t i, std::uint32_t left) { words[i] = words[i] << 1 | left; });
  }
  count(words_.data(), subtree.tests.size());
  present_ = counts_;
  const std::vector<std::uint32_t> lines = lines_of(subtree);
  const std::size_t start = to_.line_of_.size();
  to_.line_of_.resize(start + (std::size_t{1} << subtree.tests.size()), 0);
  for (std::size_t line = 0; line < lines.size(); ++line) {
    to_.line_of_[start + lines[line]] = static_cast<std::uint16_t>(line);
  }
  const std::size_t first = to_.lines_.size();
  to_.lines_.resize(first + lines.size() * subtree.columns.size() * to_.outputs_ * 3, 0.0);
  add_leaves(subtree, node, lines, to_.lines_.data() + first);
}

// Outcomes of all tests that rows can have.
std::vector<std::uint32_t> JointBuilder::lines_of(const Subtree& subtree) const {
  std::vector<std::uint32_t> lines = {0};
  for (const std::uint32_t column : subtree.columns) {
    std::vector<std::uint32_t> more;
    for (const std::uint32_t pattern : patterns_of(subtree.tests, column)) {
      for (const std::uint32_t line : lines) more.push_back(line | pattern);
    }
    lines = std::move(more);
  }
  return lines;
}

void JointBuilder::add_leaves(const Subtree& subtree, std::uint32_t node, const std::vector<std::uint32_t>& lines,
                              double* to) {
  if (!trees_.is_split(node)) {
    add_lines(subtree, node, lines, to);
    return;
  }
  const bool is_new = push(node);
  for (const bool left : {true, false}) {
    path_.back().goes_left = left;
    add_leaves(subtree, static_cast<std::uint32_t>(trees_.child(node, left)), lines, to);
  }
  pop(is_new);
}

// What a leaf adds to each line.
void JointBuilder::add_lines(const Subtree& subtree, std::uint32_t node, const std::vector<std::uint32_t>& lines,
                             double* to) {
  struct Interval {
    std::uint32_t test, side, bit;
  };
  std::vector<Interval> intervals;
  for (const Edge& edge : path_) {
    const auto test = std::find(subtree.tests.begin(), subtree.tests.end(), edge.node);
    intervals.push_back({static_cast<std::uint32_t>(subtree.tests.end() - test - 1), edge.goes_left,
                         static_cast<std::uint32_t>(bit_of(trees_.column(edge.node)))});
  }
  const auto failed = [&](std::uint32_t outcomes) {
    std::uint32_t mask = 0;
    for (const Interval& its : intervals) mask |= ((outcomes >> its.test & 1) ^ its.side) << its.bit;
    return mask;
  };
  const std::size_t columns = column_of_.size(), outputs = to_.outputs_, masks = std::size_t{1} << columns;
  numbers_.assign(masks, 0);
  for (const auto& [outcomes, number] : present_) numbers_[failed(outcomes)] += number;
  counts_.clear();
  for (std::uint32_t mask = 0; mask < masks; ++mask) {
    if (numbers_[mask] != 0) counts_.push_back({mask, numbers_[mask]});
  }
  add_base(node, numbers_[0]);
  std::vector<std::size_t> place(columns);
  for (std::size_t bit = 0; bit < columns; ++bit) {
    const auto at = std::lower_bound(subtree.columns.begin(), subtree.columns.end(), column_of_[bit]);
    place[bit] = static_cast<std::size_t>(at - subtree.columns.begin()) * outputs * 3;
  }
  const double* value = value_.data() + node * outputs;
  of_failed_.assign(masks * columns * 3, 0.0);
  std::vector<bool> is_known(masks, false);
  for (const std::uint32_t line : lines) {
    const std::uint32_t mask = failed(line);
    double* const gains = of_failed_.data() + mask * columns * 3;
    if (!is_known[mask]) add_up(mask, gains);
    is_known[mask] = true;
    for (std::size_t bit = 0; bit < columns; ++bit) {
      for (std::size_t k = 0; k < outputs; ++k) {
        for (std::size_t which = 0; which < 3; ++which) to[place[bit] + 3 * k + which] += value[k] * gains[3 * bit + which];
      }
    }
    to += subtree.columns.size() * outputs * 3;
  }
}

// Gains of a leaf of value 1 for rows that fail `mask`, (columns, 3).
void JointBuilder::add_up(std::uint32_t mask, double* gains) {
  gains_.start(mask, column_of_.size());
  bool meets = false;
  for (const auto& [only, number] : counts_) {
    if (mask & only) continue;
    gains_.meet(only, count_bits(only), number * to_.weight_);
    meets = true;
  }
  if (!meets) return;
  gains_.end();
  for (std::size_t bit = 0; bit < column_of_.size(); ++bit) {
    const Gain& gain = gains_[bit];
    *gains++ = gain.value;
    *gains++ = gain.alone;
    *gains++ = gain.last;
  }
}

// -- walks

// `above` are the columns that background rows fail above a node.
void JointBuilder::add_masks(const std::vector<Plan>& plan, std::size_t at, std::size_t level, const std::uint32_t* above) {
  const std::uint32_t node = plan[at].node;
  if (!plan[at].walks || !masks_fit()) {
    to_.nodes_.push_back({0.0, node, 0, 0, 0, 0, 0, false, true});
    return;
  }
  if (!trees_.is_split(node)) {
    add_leaf(node, above);
    return;
  }
  const std::size_t below = splits_below(node, kBelow);
  if (merged_ != nullptr || size_ < kMerged || below > kBelow || column_of_.size() + below > kBits) {
    add_split(plan, at, level, above);
    return;
  }
  std::vector<std::uint32_t> tests;
  collect(node, tests);
  const Merged few = merged(tests, above);
  merged_ = &few;
  add_split(plan, at, level, few.failed.data());
  merged_ = nullptr;
}

void JointBuilder::add_split(const std::vector<Plan>& plan, std::size_t at, std::size_t level, const std::uint32_t* above) {
  const std::size_t place = to_.nodes_.size(), first = to_.least_.size();
  const std::uint32_t node = plan[at].node;
  keep_least(above);
  to_.nodes_.push_back({trees_.threshold(node), node, static_cast<std::uint32_t>(trees_.column(node)), 0,
                        static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(to_.least_.size()), 0, false, false});
  const bool is_new = push(node);
  const std::size_t bit = bit_of(trees_.column(node));
  to_.nodes_[place].bit = static_cast<std::uint8_t>(bit);
  if (failed_.size() == level) failed_.emplace_back(size_);
  std::uint32_t* const below = failed_[level].data();
  const std::uint32_t fails = std::uint32_t{1} << bit;
  outcomes(node, [=](std::size_t i, std::uint32_t left) { below[i] = above[i] | ((left - 1) & fails); });
  add_masks(plan, at + 1, level + 1, below);
  to_.nodes_[place].right = static_cast<std::uint32_t>(to_.nodes_.size());
  // on the other side the others fail
  for (std::size_t i = 0; i < rows(); ++i) below[i] = above[i] | (fails & ~below[i]);
  add_masks(plan, plan[at].right, level + 1, below);
  pop(is_new);
}

void JointBuilder::add_leaf(std::uint32_t node, const std::uint32_t* failed) {
  count(failed, column_of_.size());
  const std::size_t first = to_.masks_.size();
  for (const auto& [mask, number] : counts_) to_.masks_.emplace_back(mask, number);
  to_.nodes_.push_back({0.0, node, 0, static_cast<std::uint32_t>(to_.leaves_.size()), static_cast<std::uint32_t>(first),
                        static_cast<std::uint32_t>(to_.masks_.size()), 0, true, false});
  add_words();
  to_.values_.insert(to_.values_.end(), value_.data() + node * to_.outputs_, value_.data() + (node + 1) * to_.outputs_);
  if (counts_[0].first == 0) add_base(node, counts_[0].second);
}

JointBuilder::Merged JointBuilder::merged(const std::vector<std::uint32_t>& tests, const std::uint32_t* above) {
  words_.assign(above, above + size_);
  std::uint32_t* const words = words_.data();
  for (const std::uint32_t test : tests) {
    outcomes(test, [=](std::size_t i, std::uint32_t left) { words[i] = words[i] << 1 | left; });
  }
  Merged few;
  numbers_.assign(std::size_t{1} << (column_of_.size() + tests.size()), 0);
  for (std::size_t i = 0; i < size_; ++i) {
    std::uint32_t& its = numbers_[words[i]];  // one more than its place
    if (its == 0) {
      few.row.push_back(static_cast<std::uint32_t>(i));
      few.number.push_back(0);
      few.failed.push_back(above[i]);
      its = static_cast<std::uint32_t>(few.row.size());
    }
    ++few.number[its - 1];
  }
  return few;
}

// Count background rows by words of n bits, in ascending order.
void JointBuilder::count(const std::uint32_t* words, std::size_t bits) {
  counts_.clear();
  const auto number = [&](std::size_t i) { return merged_ == nullptr ? 1 : merged_->number[i]; };
  if (bits <= kCounted && (std::size_t{1} << bits) <= std::max<std::size_t>(256, 4 * rows())) {
    numbers_.assign(std::size_t{1} << bits, 0);
    if (merged_ == nullptr) {
      for (std::size_t i = 0; i < size_; ++i) ++numbers_[words[i]];
    } else {
      for (std::size_t i = 0; i < rows(); ++i) numbers_[words[i]] += number(i);
    }
    for (std::uint32_t word = 0; word < numbers_.size(); ++word) {
      if (numbers_[word] != 0) counts_.push_back({word, numbers_[word]});
    }
    return;
  }
  sorted_.clear();
  for (std::size_t i = 0; i < rows(); ++i) sorted_.push_back({words[i], number(i)});
  std::sort(sorted_.begin(), sorted_.end());
  for (const auto& [word, rows] : sorted_) {
    if (counts_.empty() || counts_.back().first != word) counts_.push_back({word, 0});
    counts_.back().second += rows;
  }
}

// Turn the masks of a leaf round.
void JointBuilder::add_words() {
  const std::size_t columns = column_of_.size(), blocks = (counts_.size() + 63) / 64, first = to_.words_.size();
  to_.leaves_.push_back({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(columns)});
  to_.words_.resize(first + blocks * columns, 0);
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    std::uint64_t* const words = to_.words_.data() + first + i / 64 * columns;
    for (std::uint32_t rest = counts_[i].first; rest != 0; rest &= rest - 1) {
      words[lowest_bit(rest)] |= std::uint64_t{1} << i % 64;
    }
  }
}

// Keep the masks that have no other one in them, unless some rows fail nothing, which meet all.
void JointBuilder::keep_least(const std::uint32_t* failed) {
  if (std::any_of(failed, failed + rows(), [](std::uint32_t mask) { return mask == 0; })) return;
  count(failed, column_of_.size());
  std::stable_sort(counts_.begin(), counts_.end(), [](const auto& one, const auto& other) {
    return count_bits(one.first) < count_bits(other.first);
  });
  std::size_t least = 0;
  for (const auto& each : counts_) {
    const auto is_in = [&](const auto& other) { return (other.first & ~each.first) == 0; };
    if (std::any_of(counts_.begin(), counts_.begin() + static_cast<std::ptrdiff_t>(least), is_in)) continue;
    if (least == kLeast) return;
    counts_[least++] = each;
  }
  for (std::size_t i = 0; i < least; ++i) to_.least_.push_back(counts_[i].first);
}

void JointBuilder::add_base(std::uint32_t node, std::uint32_t number) {
  const double weight = number * to_.weight_;
  for (std::size_t k = 0; k < to_.outputs_; ++k) to_.base_[k] += value_(node, k) * weight;
}

// -- JointBackground

JointBackground::JointBackground(const Trees& trees, Matrix value, std::size_t first, std::size_t end, Matrix background,
                                 std::size_t bytes)
    : trees_(trees), end_(first), outputs_(value.shape(1)), base_(value.shape(1), 0.0) {
  require(value.shape(0) == trees.size() && value.shape(1) > 0, "value must be (nodes, outputs)");
  require(first <= end && end <= trees.roots().size(), "there are no such trees");
  require(background.shape(0) == trees.columns(), "background must be (columns, rows)");
  require(0 < background.shape(1) && background.shape(1) <= 0xFFFFFFFF, "there are no rows, or too many");
  weight_ = 1.0 / static_cast<double>(background.shape(1));
  for (std::size_t node = 0; node < trees.size(); ++node) has_sets_ |= trees.is_split(node) && trees.is_by_set(node);
  JointBuilder(*this, value, background).build(first, end, static_cast<double>(bytes));
}

std::size_t JointBackground::bytes() const {
  return lines_.size() * sizeof(double) + line_of_.size() * sizeof(std::uint16_t) + values_.size() * sizeof(double) +
         (steps_.size() + tests_.size()) * sizeof(JointTest) + tables_.size() * sizeof(JointTable) +
         nodes_.size() * sizeof(JointNode) + (masks_.size() + words_.size()) * sizeof(JointMask) + leaves_.size() * sizeof(JointLeaf) +
         (least_.size() + columns_.size()) * sizeof(std::uint32_t);
}

namespace {

void add_against(const JointBackground& background, Matrix x, MatrixOut base, Array<double, 4> sums) {
  background.add(x, base, sums);
}

}  // namespace

void add_joint_background(nb::module_& module) {
  nb::class_<JointBackground>(module, "JointBackground")
      .def(nb::init<const Trees&, Matrix, std::size_t, std::size_t, Matrix, std::size_t>(), nb::arg(),
           nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg(), nb::keep_alive<1, 2>(),
           nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("end", &JointBackground::end)
      .def_prop_ro("bytes", &JointBackground::bytes);
  define(module, "add_against", &add_against);
}

}  // namespace limes
