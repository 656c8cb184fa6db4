// Contributions of columns to a forest's value at many rows: Shapley values of the game v(S) = E_w[f | x_S = row_S].
//
// Each column keeps the row's value with probability t. On a path, a column has an interval with b = 1 if the row lies in
// it, m = its probability under the row's law, q = t b + (1 - t) m, ρ = (b - m) / q: mean and contrast / mean of the
// interval. As in forest_row.cpp, P(node) is the product of q over the columns above, S(node) the sum of value * P over the
// leaves below, and a column's β(t) the sum of S(child) * (ρ_child - ρ_parent) over the edges that split it. β is a
// polynomial in t, whose integral over [0, 1] is the contribution. Nodes t lie beside each other in registers.
//
// Of a row an edge needs to know the cell of its column, which decides m, and one of three states:
//
//     0  a split above has parted the row from the path, b = 0:    ratio of q = m_child / m_parent,    change of ρ = 0
//     1  b = 1, and the row goes left:     left    ratio = q_left / q_parent,      change = ρ_left - ρ_parent
//                                          right   ratio = (1 - t) m / q_parent,   change = -1 / (1 - t) - ρ_parent
//     2  b = 1, and the row goes right: the same with sides exchanged
//
// Leaves need no ρ of their edges, which takes a division. With values a on the row's side of a split and o on the other,
//
//     F = t a + (1 - t) (m_a a + m_o o),    C = (1 - m_a) a - m_o o,
//
// they add F / q_parent to the sum and (C - ρ_parent F) / q_parent to the change; in state 0 F has t = 0 and C = 0.
//
// The numbers of a split are computed once for each cell and state that the rows of a block have, and looked up by
// rows: of a few cells a block needs a division or two a row and split less than without. Every row is added up alone and
// in one order, and no product and sum are rounded together: its numbers are the same in any block, on any processor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "contribution_nodes.h"
#include "intervals.h"
#include "splits.h"

namespace limes {

// One for each set of instructions, for 4 or 8 nodes; null where the compiler does not know it.
AddContributions portable_contributions(std::size_t nodes);
AddContributions avx2_contributions(std::size_t nodes);
AddContributions avx512_contributions(std::size_t nodes);

namespace {

// Rows of a block: sums of one path over this many rows stay in the cache. More rows share the divisions of a cell.
constexpr std::size_t kRowsTogether = 64, kRowsOfOneOutput = 128;
// Up to this many rows a cell are likely to lack some states of cells, which then cost no division: a block of few rows, or
// a column of many cells, as groups of columns are.
constexpr std::size_t kFewRows = 8;

template <std::size_t T>
class Contributions {
 public:
  explicit Contributions(const ContributionsTask& task)
      : a_(task),
        s_(task.splits),
        size_(std::min(task.rows, s_.outputs == 1 ? kRowsOfOneOutput : kRowsTogether)),
        most_(std::min(task.width, size_)),
        local_(s_.columns * size_),
        places_(s_.columns * size_),
        distinct_(s_.columns * most_),
        distinct_count_(s_.columns),
        position_(task.width, kNone),
        open_(s_.levels),
        state_(s_.levels * size_),
        entry_(s_.levels * size_),
        used_(3 * most_, 1),
        edges_(s_.levels * 3 * most_ * kEntry),
        kept_(s_.levels * 2 * most_ * kKept),
        leaves_(3 * most_ * 2 * T),
        probability_(s_.levels * size_ * T, 1.0),
        total_(s_.levels * s_.outputs * size_ * T),
        effect_(s_.columns * s_.outputs * size_ * T),
        mean_(s_.outputs * size_ * T),
        nodes_(task) {}

  void add() {
    for (std::size_t row = 0; row < a_.rows; row += size_) {
      take(row, std::min(size_, a_.rows - row));
      for (std::size_t i = 0; i < a_.count; ++i) walk(a_.trees[i]);
      write();
    }
  }

 private:
  using Real = Nodes<T>;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  // Numbers of a cell and state: ratio left and right, change left and right; and 1 / q and ρ of an edge.
  static constexpr std::size_t kEntry = 4 * T, kKept = 2 * T;

  void take(std::size_t first, std::size_t rows) {
    first_ = first, rows_ = rows;
    std::fill(used_.begin(), used_.end(), std::uint8_t{1});
    std::fill(effect_.begin(), effect_.end(), 0.0);
    std::fill(mean_.begin(), mean_.end(), 0.0);
    for (std::size_t j = 0; j < s_.columns; ++j) {
      std::uint32_t *distinct = &distinct_[j * most_], count = 0;
      for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t at = (first + i) * s_.columns + j;
        std::uint32_t& position = position_[a_.cells[at]];
        if (position == kNone) {
          distinct[count] = a_.cells[at];
          position = count++;
        }
        local_[j * size_ + i] = 3 * position * static_cast<std::uint32_t>(kEntry);
        places_[j * size_ + i] = a_.places[at];
      }
      distinct_count_[j] = count;
      for (std::uint32_t c = 0; c < count; ++c) position_[distinct[c]] = kNone;
    }
  }

  void walk(std::size_t tree) {
    std::size_t open = 0;  // levels with an unfinished subtree
    const std::size_t end = s_.starts[tree + 1];
    for (std::size_t s = s_.starts[tree]; s < end; ++s) {
      const std::size_t level = s_.depth[s];
      while (open > level) close(--open);
      find_states(s, level);
      // half of all splits have two leaves, whose sums need not be stored
      if (level > 0 && (s + 1 == end || s_.depth[s + 1] <= level)) {
        for (std::size_t k = 0; k < s_.outputs; ++k) add_last(s, level, k);
        continue;
      }
      tabulate(s, level);
      if (level > 0) go_down(s, level);
      open_[level] = s;
      if (s_.has_leaf[s]) {
        for (std::size_t k = 0; k < s_.outputs; ++k) add_leaves(s, level, k);
      } else {
        std::memset(total(level, 0), 0, s_.outputs * size_ * T * sizeof(double));
      }
      open = level + 1;
    }
    while (open > 0) close(--open);
  }

  // Vectors that are stored may overlap any number, so that loops over rows keep how many these are.
  void go_down(std::size_t s, std::size_t level) {
    const double *edges = of_entry(level - 1, 0) + s_.side[s] * T, *before = &probability_[(level - 1) * size_ * T];
    const std::uint32_t* entry = &entry_[(level - 1) * size_];
    double* after = &probability_[level * size_ * T];
    for (std::size_t i = 0, rows = rows_; i < rows; ++i) {
      (Real::load(before + i * T) * Real::load(edges + entry[i])).store(after + i * T);
    }
  }

  // The state of each row at split s, and where the numbers of its cell and state are.
  void find_states(std::size_t s, std::size_t level) {
    const Intervals::Split& split = a_.intervals.splits[s];
    const Intervals::Side& left = split.sides[0];
    const std::size_t j = s_.column[s];
    std::uint8_t* state = &state_[level * size_];
    if (a_.first[j] >= 0) {
      const auto set = static_cast<std::size_t>(left.upper - static_cast<std::uint32_t>(a_.first[j]));
      const bool* is_in = a_.members + set * a_.rows + first_;
      for (std::size_t i = 0, rows = rows_; i < rows; ++i) state[i] = is_in[i] ? 1 : 2;
    } else {
      const std::uint32_t *place = &places_[j * size_], lower = left.lower, upper = left.upper;
      const std::uint32_t missing = left.missing ? split.last : kNone;
      for (std::size_t i = 0, rows = rows_; i < rows; ++i) {
        state[i] = ((lower < place[i]) & (place[i] <= upper)) | (place[i] == missing) ? 1 : 2;
      }
    }
    if (split.same >= 0) {
      const auto same = static_cast<std::size_t>(split.same);
      const std::uint8_t *above = &state_[s_.depth[same / 2] * size_], side = static_cast<std::uint8_t>(1 + same % 2);
      for (std::size_t i = 0, rows = rows_; i < rows; ++i) state[i] = above[i] == side ? state[i] : 0;
    }
    const std::uint32_t* local = &local_[j * size_];
    std::uint32_t* entry = &entry_[level * size_];
    for (std::size_t i = 0, rows = rows_; i < rows; ++i) entry[i] = local[i] + state[i] * static_cast<std::uint32_t>(kEntry);
    const bool is_full = rows_ > kFewRows * distinct_count_[j];
    std::memset(used_.data(), is_full, 3 * distinct_count_[j]);
    if (is_full) return;
    for (std::size_t i = 0, rows = rows_; i < rows; ++i) used_[entry[i] / kEntry] = 1;
  }

  // Of the last edge above split s on its column, in a cell: its probability, and 1 / q and ρ of rows in its interval.
  struct Above {
    double mass;
    Real inverse, rho;
  };
  Above above(std::size_t s, std::size_t c, std::uint32_t cell) const {
    const std::int32_t same = a_.intervals.splits[s].same;
    if (same < 0) return {1.0, Real::all(1.0), Real::all(0.0)};
    const auto edge = static_cast<std::size_t>(same);
    const double* kept = &kept_[((s_.depth[edge / 2] * 2 + edge % 2) * most_ + c) * kKept];
    return {a_.masses[edge * a_.width + cell], Real::load(kept), Real::load(kept + T)};
  }

  // Ratios and changes of the two edges below split s.
  void tabulate(std::size_t s, std::size_t level) {
    const std::size_t j = s_.column[s];
    const Real kept_t = nodes_.kept, drawn = nodes_.drawn, parted = nodes_.parted;
    const double* masses = a_.masses + 2 * s * a_.width;
    for (std::size_t c = 0; c < distinct_count_[j]; ++c) {
      const std::uint32_t cell = distinct_[j * most_ + c];
      const double m[2] = {masses[cell], masses[a_.width + cell]};
      const Above its = above(s, c, cell);
      if (used_[3 * c]) {
        double* edges = of_entry(level, 3 * c);
        const double inverse = inverse_of(its.mass);
        for (std::size_t side = 0; side < 2; ++side) {
          Real::all(m[side] * inverse).store(edges + side * T);
          Real::all(0.0).store(edges + (2 + side) * T);
        }
      }
      for (std::size_t side = 0; side < 2; ++side) {
        if (!used_[3 * c + 1 + side]) continue;
        double *edges = of_entry(level, 3 * c + 1 + side), *kept = of_kept(level, side, c);
        const Real q = kept_t + drawn * Real::all(m[side]), inverse = Real::all(1.0) / q;
        const Real rho = Real::all(1.0 - m[side]) * inverse;
        inverse.store(kept);
        rho.store(kept + T);
        (q * its.inverse).store(edges + side * T);
        (drawn * Real::all(m[1 - side]) * its.inverse).store(edges + (1 - side) * T);
        (rho - its.rho).store(edges + (2 + side) * T);
        (parted - its.rho).store(edges + (3 - side) * T);
      }
    }
  }

  // What the leaves below split s add up to for each entry, P being 1 at the split, and what the change is. A child that
  // is no leaf has the value 0 here.
  void tabulate_leaves(std::size_t s, std::size_t k) {
    const double values[2] = {s_.leaves[2 * s * s_.outputs + k], s_.leaves[(2 * s + 1) * s_.outputs + k]};
    const std::size_t j = s_.column[s];
    const double* masses = a_.masses + 2 * s * a_.width;
    for (std::size_t c = 0; c < distinct_count_[j]; ++c) {
      const std::uint32_t cell = distinct_[j * most_ + c];
      const double m[2] = {masses[cell], masses[a_.width + cell]};
      const Above its = above(s, c, cell);
      double* numbers = &leaves_[3 * c * 2 * T];
      if (used_[3 * c]) {
        Real::all(inverse_of(its.mass) * (m[0] * values[0] + m[1] * values[1])).store(numbers);
        Real::all(0.0).store(numbers + T);
      }
      for (std::size_t side = 0; side < 2; ++side) {
        numbers += 2 * T;
        if (!used_[3 * c + 1 + side]) continue;
        const double here = values[side], other = values[1 - side], mass = m[side], rest = m[1 - side];
        const Real sum = nodes_.kept * Real::all(here) + nodes_.drawn * Real::all(mass * here + rest * other);
        const Real change = Real::all((1.0 - mass) * here - rest * other) - its.rho * sum;
        (its.inverse * sum).store(numbers);
        (its.inverse * change).store(numbers + T);
      }
    }
  }

  void add_leaves(std::size_t s, std::size_t level, std::size_t k) {
    tabulate_leaves(s, k);
    const double *probability = &probability_[level * size_ * T], *leaves = leaves_.data();
    const std::uint32_t* entry = &entry_[level * size_];
    double *totals = total(level, k), *effects = effect(s_.column[s], k);
    for (std::size_t i = 0, rows = rows_; i < rows; ++i) {
      const double* numbers = leaves + entry[i] / 2;
      const Real p = Real::load(probability + i * T);
      (p * Real::load(numbers)).store(totals + i * T);
      (Real::load(effects + i * T) + p * Real::load(numbers + T)).store(effects + i * T);
    }
  }

  // A split with two leaves, below another one: `go_down`, `add_leaves` and `close` at once.
  void add_last(std::size_t s, std::size_t level, std::size_t k) {
    tabulate_leaves(s, k);
    const std::size_t above = s_.parent[s];
    const double *before = &probability_[(level - 1) * size_ * T], *leaves = leaves_.data();
    const double *ratios = of_entry(level - 1, 0) + s_.side[s] * T, *changes = ratios + 2 * T;
    const std::uint32_t *entry = &entry_[level * size_], *entry_above = &entry_[(level - 1) * size_];
    double *upper = total(level - 1, k), *effects = effect(s_.column[s], k), *effects_above = effect(s_.column[above], k);
    for (std::size_t i = 0, rows = rows_; i < rows; ++i) {
      const double* numbers = leaves + entry[i] / 2;
      const Real p = Real::load(before + i * T) * Real::load(ratios + entry_above[i]);
      const Real sum = p * Real::load(numbers);
      (Real::load(upper + i * T) + sum).store(upper + i * T);
      (Real::load(effects + i * T) + p * Real::load(numbers + T)).store(effects + i * T);
      // after the other effects are stored: these may be the same column's
      (Real::load(effects_above + i * T) + sum * Real::load(changes + entry_above[i])).store(effects_above + i * T);
    }
  }

  // Hand what a finished subtree has summed up to its edge's column and to its parent.
  void close(std::size_t level) {
    if (level == 0) {
      const double* sums = total(0, 0);
      for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] += sums[i];
      return;
    }
    const std::size_t s = open_[level], above = s_.parent[s], j = s_.column[above];
    const double* changes = of_entry(level - 1, 0) + (2 + s_.side[s]) * T;
    const std::uint32_t* entry = &entry_[(level - 1) * size_];
    for (std::size_t k = 0; k < s_.outputs; ++k) {
      const double* sums = total(level, k);
      double *upper = total(level - 1, k), *effects = effect(j, k);
      for (std::size_t i = 0, rows = rows_; i < rows; ++i) {
        const Real sum = Real::load(sums + i * T);
        (Real::load(upper + i * T) + sum).store(upper + i * T);
        (Real::load(effects + i * T) + sum * Real::load(changes + entry[i])).store(effects + i * T);
      }
    }
  }

  void write() {
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t k = 0; k < s_.outputs; ++k) {
        a_.base[(first_ + i) * s_.outputs + k] += integral<T>(a_, 1, &mean_[(k * size_ + i) * T]);
        for (std::size_t q = 0; q < 3; ++q) {
          for (std::size_t j = 0; j < s_.columns; ++j) {
            a_.sums[(((first_ + i) * 3 + q) * s_.columns + j) * s_.outputs + k] += integral<T>(a_, q, effect(j, k) + i * T);
          }
        }
      }
    }
  }

  double* of_entry(std::size_t level, std::size_t e) { return &edges_[(level * 3 * most_ + e) * kEntry]; }
  double* of_kept(std::size_t level, std::size_t side, std::size_t c) {
    return &kept_[((level * 2 + side) * most_ + c) * kKept];
  }
  double* total(std::size_t level, std::size_t k) { return &total_[(level * s_.outputs + k) * size_ * T]; }
  double* effect(std::size_t j, std::size_t k) { return &effect_[(j * s_.outputs + k) * size_ * T]; }

  const ContributionsTask& a_;
  const Splits& s_;
  const std::size_t size_, most_;  // rows of a block, and the most cells of a column that they have
  std::size_t first_ = 0, rows_ = 0;
  // of each column: where the numbers of rows' cells begin, rows' places, and the block's cells
  std::vector<std::uint32_t> local_, places_, distinct_, distinct_count_, position_;
  // of each open level
  std::vector<std::size_t> open_;
  std::vector<std::uint8_t> state_;
  std::vector<std::uint32_t> entry_;
  std::vector<std::uint8_t> used_;
  std::vector<double, InLines<double>> edges_, kept_, leaves_, probability_, total_, effect_, mean_;
  const Quadrature<T> nodes_;
};

template <std::size_t T>
void add_together(const ContributionsTask& task) {
  Contributions<T>(task).add();
}

inline AddContributions contributions_of(std::size_t nodes) {
  return nodes == 4 ? &add_together<4> : nodes == 8 ? &add_together<8> : nullptr;
}

}  // namespace
}  // namespace limes
