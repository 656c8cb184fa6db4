// Pairs of columns of a forest at many rows: Shapley interaction indices of the game v(S) = E_w[f | x_S = row_S].
//
// With the numbers of forest_contributions.h, where each column keeps the row's value with probability t, a leaf adds
// value * P * rho_i * rho_j to the second difference of columns i and j, a polynomial in t whose integral over [0, 1] is the
// index of the pair. On a path rho_i changes at the splits of i alone, so that rho_i * rho_j at the leaf is the sum of its
// changes: a split of column i, with
//
//     D = sum over both children of S(child) * (rho_i at the child - rho_i above),
//
// adds D * rho_j to every pair of i with another column j above it, whose rho_j is that of its last edge. A split costs the
// number of different columns above it, and nothing where an edge above has parted the row from the path (D = 0).
//
// Which columns are above, and where their last edges are, is the same for all rows: the rows of a block go down
// together. Every row is added up alone and in one order, and no product and sum are rounded together: its numbers are the
// same in any block, on any processor.
#pragma once

#include "forest_contributions.h"

namespace limes {

struct PairsTask {
  ContributionsTask of;  // without base and sums; the first row of weights is read
  double* pairs;         // (rows, columns (columns - 1) / 2, outputs), is added to: pairs (1, 0), (2, 0), (2, 1), ...
};

using AddPairs = void (*)(const PairsTask&);

// One for each set of instructions, for 4 or 8 nodes; null where the compiler does not know it.
AddPairs portable_pairs(std::size_t nodes);
AddPairs avx2_pairs(std::size_t nodes);
AddPairs avx512_pairs(std::size_t nodes);

// The position of a pair of different columns.
inline std::size_t pair_of(std::size_t i, std::size_t j) { return i > j ? i * (i - 1) / 2 + j : j * (j - 1) / 2 + i; }

namespace {

template <std::size_t T>
class Pairs {
 public:
  explicit Pairs(const PairsTask& task)
      : a_(task.of),
        out_(task.pairs),
        s_(a_.splits),
        count_(s_.columns * (s_.columns - 1) / 2),
        block_(std::max<std::size_t>(1, std::min({a_.rows, kPairRows, kPairNumbers / (count_ * s_.outputs * T + 1)}))),
        open_(s_.levels),
        above_(s_.levels),
        state_(s_.levels * block_),
        edges_(s_.levels * block_ * kEdges),
        total_(s_.levels * block_ * s_.outputs * T),
        change_(total_.size()),
        pairs_(block_ * s_.outputs * count_ * T),
        nodes_(a_) {}

  void add() {
    for (first_ = 0; first_ < a_.rows; first_ += block_) {
      rows_ = std::min(block_, a_.rows - first_);
      std::fill(pairs_.begin(), pairs_.end(), 0.0);
      for (std::size_t i = 0; i < a_.count; ++i) walk(a_.trees[i]);
      write();
    }
  }

 private:
  using Real = Nodes<T>;
  // Numbers of a level and row: P, ratio left and right, change of rho left and right, 1 / q and rho of the edge that the
  // row takes, and rho of the edge that the walk has taken
  enum : std::size_t {
    kProbability = 0, kRatio = T, kChange = 3 * T, kInverse = 5 * T, kRho = 6 * T, kTaken = 7 * T, kEdges = 8 * T
  };
  // A column above a split, other than its own: where rho of its last edge is, and the pair.
  struct Above {
    std::size_t level, column, pair;
  };

  void walk(std::size_t tree) {
    std::size_t open = 0;  // levels with an unfinished subtree
    const std::size_t end = s_.starts[tree + 1];
    for (std::size_t s = s_.starts[tree]; s < end; ++s) {
      const std::size_t level = s_.depth[s];
      while (open > level) close(--open);
      open_[level] = s;
      find_above(s, level);
      for (std::size_t i = 0; i < rows_; ++i) {
        if (level > 0) take_edge(s, level, i);
        find_edges(s, level, i);
        add_leaves(s, level, i);
      }
      open = level + 1;
    }
    while (open > 0) close(--open);
  }

  // The columns of all splits above but the split's own, each with its last edge.
  void find_above(std::size_t s, std::size_t level) {
    const std::size_t column = s_.column[s];
    std::vector<Above>& its = above_[level];
    its.clear();
    if (level == 0) return;
    const std::size_t last = s_.column[open_[level - 1]];
    if (last != column) its.push_back({level - 1, last, pair_of(last, column)});
    for (const Above& other : above_[level - 1]) {
      if (other.column != column) its.push_back({other.level, other.column, pair_of(other.column, column)});
    }
  }

  // P of a split, and rho of the edge that leads to it.
  void take_edge(std::size_t s, std::size_t level, std::size_t i) {
    double *its = edges(level, i), *above = edges(level - 1, i);
    const std::size_t side = s_.side[s];
    (Real::load(above) * Real::load(above + kRatio + side * T)).store(its);
    const bool is_rows = state_[(level - 1) * block_ + i] == 1 + side;
    (is_rows ? Real::load(above + kRho) : nodes_.parted).store(above + kTaken);
  }

  // The state of a row at split s, as in forest_contributions.h.
  std::uint8_t state_at(std::size_t s, std::size_t i, const Intervals::Split& split) const {
    if (split.same >= 0) {
      const auto same = static_cast<std::size_t>(split.same);
      if (state_[s_.depth[same / 2] * block_ + i] != 1 + same % 2) return 0;
    }
    const Intervals::Side& left = split.sides[0];
    const std::size_t j = s_.column[s];
    if (a_.first[j] >= 0) {
      const auto set = static_cast<std::size_t>(left.upper - static_cast<std::uint32_t>(a_.first[j]));
      return a_.members[set * a_.rows + first_ + i] ? 1 : 2;
    }
    const std::uint32_t place = a_.places[(first_ + i) * s_.columns + j];
    return ((left.lower < place) & (place <= left.upper)) | (left.missing & (place == split.last)) ? 1 : 2;
  }

  // Ratios and changes of the two edges below split s.
  void find_edges(std::size_t s, std::size_t level, std::size_t i) {
    const Intervals::Split& split = a_.intervals.splits[s];
    double* its = edges(level, i);
    if (level == 0) Real::all(1.0).store(its);
    const std::uint8_t state = state_at(s, i, split);
    const std::size_t cell = a_.cells[(first_ + i) * s_.columns + s_.column[s]];
    const double* masses = a_.masses + 2 * s * a_.width + cell;
    const double m[2] = {masses[0], masses[a_.width]};
    state_[level * block_ + i] = state;
    if (state == 0) {
      const double above = a_.masses[static_cast<std::size_t>(split.same) * a_.width + cell];
      for (std::size_t side = 0; side < 2; ++side) {
        Real::all(above > 0.0 ? m[side] / above : 0.0).store(its + kRatio + side * T);
      }
      return;  // nothing reads changes of 0
    }
    const std::size_t side = state - 1;
    const Real q = nodes_.kept + nodes_.drawn * Real::all(m[side]), inverse = Real::all(1.0) / q;
    const Real rho = Real::all(1.0 - m[side]) * inverse;
    Real inverse_above = Real::all(1.0), rho_above = Real::all(0.0);
    if (split.same >= 0) {
      const double* same = edges(s_.depth[static_cast<std::size_t>(split.same) / 2], i);
      inverse_above = Real::load(same + kInverse), rho_above = Real::load(same + kRho);
    }
    inverse.store(its + kInverse);
    rho.store(its + kRho);
    (q * inverse_above).store(its + kRatio + side * T);
    (nodes_.drawn * Real::all(m[1 - side]) * inverse_above).store(its + kRatio + (1 - side) * T);
    (rho - rho_above).store(its + kChange + side * T);
    (nodes_.parted - rho_above).store(its + kChange + (1 - side) * T);
  }

  // S and D of the leaves below a split; a child that is no leaf has the value 0 here.
  void add_leaves(std::size_t s, std::size_t level, std::size_t i) {
    const double* its = edges(level, i);
    for (std::size_t k = 0; k < s_.outputs; ++k) {
      const Real p = Real::load(its);
      const Real left = p * Real::load(its + kRatio) * Real::all(s_.leaves[2 * s * s_.outputs + k]);
      const Real right = p * Real::load(its + kRatio + T) * Real::all(s_.leaves[(2 * s + 1) * s_.outputs + k]);
      (left + right).store(total(level, i, k));
      if (state_[level * block_ + i] == 0) continue;
      (left * Real::load(its + kChange) + right * Real::load(its + kChange + T)).store(change(level, i, k));
    }
  }

  // Hand what a finished subtree sums up to the split above it, and what its split changes to the pairs.
  void close(std::size_t level) {
    const std::size_t s = open_[level];
    const std::vector<Above>& above = above_[level];
    for (std::size_t i = 0; i < rows_; ++i) {
      const bool differs = state_[level * block_ + i] != 0;
      for (std::size_t k = 0; k < s_.outputs; ++k) {
        if (differs) {
          const Real d = Real::load(change(level, i, k));
          double* pairs = &pairs_[(i * s_.outputs + k) * count_ * T];
          for (const Above& other : above) {
            double* at = pairs + other.pair * T;
            (Real::load(at) + d * Real::load(edges(other.level, i) + kTaken)).store(at);
          }
        }
        if (level == 0) continue;
        const Real sum = Real::load(total(level, i, k));
        double* upper = total(level - 1, i, k);
        (Real::load(upper) + sum).store(upper);
        if (state_[(level - 1) * block_ + i] == 0) continue;
        double* changes = change(level - 1, i, k);
        const double* its = edges(level - 1, i) + kChange + s_.side[s] * T;
        (Real::load(changes) + sum * Real::load(its)).store(changes);
      }
    }
  }

  void write() {
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t k = 0; k < s_.outputs; ++k) {
        const double* its = &pairs_[(i * s_.outputs + k) * count_ * T];
        double* to = out_ + (first_ + i) * count_ * s_.outputs + k;
        for (std::size_t p = 0; p < count_; ++p) to[p * s_.outputs] += integral<T>(a_, 0, its + p * T);
      }
    }
  }

  double* edges(std::size_t level, std::size_t i) { return &edges_[(level * block_ + i) * kEdges]; }
  double* total(std::size_t level, std::size_t i, std::size_t k) {
    return &total_[((level * block_ + i) * s_.outputs + k) * T];
  }
  double* change(std::size_t level, std::size_t i, std::size_t k) {
    return &change_[((level * block_ + i) * s_.outputs + k) * T];
  }

  // Rows of a block at most, and numbers of their pairs: these stay in the cache.
  static constexpr std::size_t kPairRows = 8, kPairNumbers = 1 << 14;

  const ContributionsTask& a_;
  double* const out_;
  const Splits& s_;
  const std::size_t count_, block_;  // pairs, and rows of a block
  std::size_t first_ = 0, rows_ = 0;
  // of each open level
  std::vector<std::size_t> open_;
  std::vector<std::vector<Above>> above_;
  std::vector<std::uint8_t> state_;
  std::vector<double, InLines<double>> edges_, total_, change_, pairs_;
  const Quadrature<T> nodes_;
};

template <std::size_t T>
void pass_of_pairs(const PairsTask& task) {
  Pairs<T>(task).add();
}

inline AddPairs pairs_of(std::size_t nodes) {
  return nodes == 4 ? &pass_of_pairs<4> : nodes == 8 ? &pass_of_pairs<8> : nullptr;
}

}  // namespace
}  // namespace limes
