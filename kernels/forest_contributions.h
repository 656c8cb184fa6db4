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
// The numbers of a split are computed once for each cell and state that the rows of a block have, and looked up by
// rows: of a few cells a block needs a division or two a row and split less than without. Every row is added up alone and
// in one order, and no product and sum are rounded together: its numbers are the same in any block, on any processor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "intervals.h"
#include "splits.h"

namespace limes {

struct ContributionsTask {
  const Splits& splits;
  const Intervals& intervals;
  const double* masses;          // (splits, 2, width), P(x in the interval of the edge) under the law of a cell
  std::size_t width;
  const std::uint32_t* cells;    // (rows, columns)
  const std::uint32_t* places;   // (rows, columns), rank of the first indicator of a threshold that is 1 at the row
  const bool* members;           // (indicators of sets, rows)
  const std::int64_t* first;     // (columns,), rank less position in `members` of a column split by sets, else -1
  std::size_t rows;
  const std::uint32_t* trees;    // (count,)
  std::size_t count;
  const double* t;               // (T, 2), t and 1 - t, neither of them 0
  const double* weights;         // (3, T): of the integral, and of either end
  double* base;                  // (rows, outputs), is added to: E_w f, with the second row of weights
  double* sums;                  // (rows, 3, columns, outputs), is added to
};

using AddContributions = void (*)(const ContributionsTask&);

// One for each set of instructions, for 4 or 8 nodes; null where the compiler does not know it.
AddContributions portable_contributions(std::size_t nodes);
AddContributions avx2_contributions(std::size_t nodes);
AddContributions avx512_contributions(std::size_t nodes);

namespace {

#if defined(__GNUC__)
#define LIMES_INLINE inline __attribute__((always_inline))
#else
#define LIMES_INLINE inline
#endif

// Numbers that a register holds. Wider vectors, which compilers keep in memory after each step, are split into halves.
#if defined(__AVX512F__)
constexpr std::size_t kRegister = 8;
#elif defined(__AVX2__)
constexpr std::size_t kRegister = 4;
#else
constexpr std::size_t kRegister = 2;
#endif

// T numbers beside each other.
template <std::size_t T, bool kIsRegister = T <= kRegister>
struct Nodes {
  Nodes<T / 2> low, high;
  static LIMES_INLINE Nodes load(const double* at) { return {Nodes<T / 2>::load(at), Nodes<T / 2>::load(at + T / 2)}; }
  LIMES_INLINE void store(double* at) const { low.store(at), high.store(at + T / 2); }
  static LIMES_INLINE Nodes all(double x) { return {Nodes<T / 2>::all(x), Nodes<T / 2>::all(x)}; }
  LIMES_INLINE Nodes operator+(Nodes other) const { return {low + other.low, high + other.high}; }
  LIMES_INLINE Nodes operator-(Nodes other) const { return {low - other.low, high - other.high}; }
  LIMES_INLINE Nodes operator*(Nodes other) const { return {low * other.low, high * other.high}; }
  LIMES_INLINE Nodes operator/(Nodes other) const { return {low / other.low, high / other.high}; }
};

template <std::size_t T>
struct Nodes<T, true> {
#if defined(__GNUC__)
  typedef double Vector __attribute__((vector_size(T * sizeof(double)), aligned(8), may_alias));
  Vector v;
  static LIMES_INLINE Nodes load(const double* at) { return {*reinterpret_cast<const Vector*>(at)}; }
  LIMES_INLINE void store(double* at) const { *reinterpret_cast<Vector*>(at) = v; }
  static LIMES_INLINE Nodes all(double x) { return {Vector{} + x}; }
  LIMES_INLINE Nodes operator+(Nodes other) const { return {v + other.v}; }
  LIMES_INLINE Nodes operator-(Nodes other) const { return {v - other.v}; }
  LIMES_INLINE Nodes operator*(Nodes other) const { return {v * other.v}; }
  LIMES_INLINE Nodes operator/(Nodes other) const { return {v / other.v}; }
#else
  double v[T];
  static Nodes load(const double* at) {
    Nodes x;
    std::memcpy(x.v, at, sizeof(x.v));
    return x;
  }
  void store(double* at) const { std::memcpy(at, v, sizeof(v)); }
  template <typename Operation>
  static Nodes of(Operation operation) {
    Nodes x;
    for (std::size_t k = 0; k < T; ++k) x.v[k] = operation(k);
    return x;
  }
  static Nodes all(double x) { return of([&](std::size_t) { return x; }); }
  Nodes operator+(const Nodes& other) const { return of([&](std::size_t k) { return v[k] + other.v[k]; }); }
  Nodes operator-(const Nodes& other) const { return of([&](std::size_t k) { return v[k] - other.v[k]; }); }
  Nodes operator*(const Nodes& other) const { return of([&](std::size_t k) { return v[k] * other.v[k]; }); }
  Nodes operator/(const Nodes& other) const { return of([&](std::size_t k) { return v[k] / other.v[k]; }); }
#endif
};

// Nodes of t, 1 - t and -1 / (1 - t).
template <std::size_t T>
struct Quadrature {
  explicit Quadrature(const ContributionsTask& task) {
    double t[T], rest[T];
    for (std::size_t k = 0; k < T; ++k) t[k] = task.t[2 * k], rest[k] = task.t[2 * k + 1];
    kept = Nodes<T>::load(t), drawn = Nodes<T>::load(rest), parted = Nodes<T>::all(-1.0) / drawn;
  }
  Nodes<T> kept, drawn, parted;
};

// The integral of numbers at nodes, with row q of the weights.
template <std::size_t T>
double integral(const ContributionsTask& task, std::size_t q, const double* at) {
  double sum = 0.0;
  for (std::size_t k = 0; k < T; ++k) sum += task.weights[q * T + k] * at[k];
  return sum;
}

// Memory that begins with a cache line: a register of eight nodes would else lie on two.
template <typename Number>
struct InLines {
  using value_type = Number;
  static constexpr std::align_val_t kLine{64};
  InLines() = default;
  template <typename Other>
  InLines(const InLines<Other>&) {}
  Number* allocate(std::size_t n) { return static_cast<Number*>(::operator new(n * sizeof(Number), kLine)); }
  void deallocate(Number* at, std::size_t) { ::operator delete(at, kLine); }
  bool operator==(const InLines&) const { return true; }
  bool operator!=(const InLines&) const { return false; }
};

// Rows of a block: sums of one path over this many rows stay in the cache.
constexpr std::size_t kRowsTogether = 64;
// Up to this many rows are likely to lack some states of a cell, which then cost no division.
constexpr std::size_t kFewRows = 8;

template <std::size_t T>
class Contributions {
 public:
  explicit Contributions(const ContributionsTask& task)
      : a_(task),
        s_(task.splits),
        size_(std::min(task.rows, kRowsTogether)),
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
      tabulate(s, level);
      // half of all splits have two leaves, whose sums need not be stored
      if (level > 0 && (s + 1 == end || s_.depth[s + 1] <= level)) {
        for (std::size_t k = 0; k < s_.outputs; ++k) add_last(s, level, k);
        continue;
      }
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
    if (rows_ > kFewRows) return;
    std::memset(used_.data(), 0, 3 * distinct_count_[j]);
    for (std::size_t i = 0, rows = rows_; i < rows; ++i) used_[entry[i] / kEntry] = 1;
  }

  // Ratios and changes of the two edges below split s.
  void tabulate(std::size_t s, std::size_t level) {
    const std::size_t j = s_.column[s];
    const std::int32_t same = a_.intervals.splits[s].same;
    const std::size_t above = same < 0 ? 0 : static_cast<std::size_t>(same);
    const double* kept_above = same < 0 ? nullptr : of_kept(s_.depth[above / 2], above % 2, 0);
    const Real kept_t = nodes_.kept, drawn = nodes_.drawn, parted = nodes_.parted;
    const double *masses = a_.masses + 2 * s * a_.width, *reached = a_.masses + above * a_.width;
    for (std::size_t c = 0; c < distinct_count_[j]; ++c) {
      const std::uint32_t cell = distinct_[j * most_ + c];
      const double m[2] = {masses[cell], masses[a_.width + cell]}, m_above = same < 0 ? 1.0 : reached[cell];
      if (used_[3 * c]) {
        double* edges = of_entry(level, 3 * c);
        for (std::size_t side = 0; side < 2; ++side) {
          Real::all(m_above > 0.0 ? m[side] / m_above : 0.0).store(edges + side * T);
          Real::all(0.0).store(edges + (2 + side) * T);
        }
      }
      if (!used_[3 * c + 1] && !used_[3 * c + 2]) continue;
      const Real inverse_above = same < 0 ? Real::all(1.0) : Real::load(kept_above + c * kKept);
      const Real rho_above = same < 0 ? Real::all(0.0) : Real::load(kept_above + c * kKept + T);
      for (std::size_t side = 0; side < 2; ++side) {
        if (!used_[3 * c + 1 + side]) continue;
        double *edges = of_entry(level, 3 * c + 1 + side), *kept = of_kept(level, side, c);
        const Real q = kept_t + drawn * Real::all(m[side]), inverse = Real::all(1.0) / q;
        const Real rho = Real::all(1.0 - m[side]) * inverse;
        inverse.store(kept);
        rho.store(kept + T);
        (q * inverse_above).store(edges + side * T);
        (drawn * Real::all(m[1 - side]) * inverse_above).store(edges + (1 - side) * T);
        (rho - rho_above).store(edges + (2 + side) * T);
        (parted - rho_above).store(edges + (3 - side) * T);
      }
    }
  }

  // Sums of both children for each entry, P being 1 at the split, and these times their changes. A child that is no leaf
  // has the value 0 here.
  void tabulate_leaves(std::size_t s, std::size_t level, std::size_t k) {
    const Real left = Real::all(s_.leaves[2 * s * s_.outputs + k]);
    const Real right = Real::all(s_.leaves[(2 * s + 1) * s_.outputs + k]);
    const std::size_t entries = 3 * distinct_count_[s_.column[s]];
    for (std::size_t e = 0; e < entries; ++e) {
      if (!used_[e]) continue;
      const double* edges = of_entry(level, e);
      const Real on_left = Real::load(edges) * left, on_right = Real::load(edges + T) * right;
      (on_left + on_right).store(&leaves_[e * 2 * T]);
      (on_left * Real::load(edges + 2 * T) + on_right * Real::load(edges + 3 * T)).store(&leaves_[e * 2 * T] + T);
    }
  }

  void add_leaves(std::size_t s, std::size_t level, std::size_t k) {
    tabulate_leaves(s, level, k);
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
    tabulate_leaves(s, level, k);
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

// The same pass for rows one after the other: of one row a split has one cell and one state, whose numbers need no table.
// The numbers are the same to the last bit.
template <std::size_t T>
class RowByRow {
 public:
  explicit RowByRow(const ContributionsTask& task)
      : a_(task),
        s_(task.splits),
        open_(s_.levels),
        state_(s_.levels),
        edges_(s_.levels * kEdges),
        total_(s_.levels * s_.outputs * T),
        effect_(s_.columns * s_.outputs * T),
        mean_(s_.outputs * T),
        nodes_(task) {}

  void add() {
    for (row_ = 0; row_ < a_.rows; ++row_) {
      cells_ = a_.cells + row_ * s_.columns, places_ = a_.places + row_ * s_.columns;
      std::fill(effect_.begin(), effect_.end(), 0.0);
      std::fill(mean_.begin(), mean_.end(), 0.0);
      for (std::size_t i = 0; i < a_.count; ++i) walk(a_.trees[i]);
      write();
    }
  }

 private:
  using Real = Nodes<T>;
  // Numbers of a level: P, ratio left and right, change left and right, and 1 / q and ρ of the edge that the row takes
  enum : std::size_t { kProbability = 0, kRatio = T, kChange = 3 * T, kInverse = 5 * T, kRho = 6 * T, kEdges = 7 * T };

  void walk(std::size_t tree) {
    std::size_t open = 0;  // levels with an unfinished subtree
    const std::size_t end = s_.starts[tree + 1];
    for (std::size_t s = s_.starts[tree]; s < end; ++s) {
      const std::size_t level = s_.depth[s];
      while (open > level) close(--open);
      double *its = &edges_[level * kEdges], *above = level > 0 ? its - kEdges : nullptr;
      const Real p = level > 0 ? Real::load(above) * Real::load(above + kRatio + s_.side[s] * T) : Real::all(1.0);
      find_edges(s, its);
      if (level > 0 && (s + 1 == end || s_.depth[s + 1] <= level)) {
        add_last(s, level, p);
        continue;
      }
      p.store(its);
      open_[level] = s;
      if (s_.has_leaf[s]) {
        add_leaves(s, level, p);
      } else {
        std::memset(total(level, 0), 0, s_.outputs * T * sizeof(double));
      }
      open = level + 1;
    }
    while (open > 0) close(--open);
  }

  // The state of the row at split s.
  std::uint8_t state_at(std::size_t s, const Intervals::Split& split) const {
    if (split.same >= 0) {
      const auto same = static_cast<std::size_t>(split.same);
      if (state_[s_.depth[same / 2]] != 1 + same % 2) return 0;
    }
    const Intervals::Side& left = split.sides[0];
    const std::size_t j = s_.column[s];
    if (a_.first[j] >= 0) {
      const auto set = static_cast<std::size_t>(left.upper - static_cast<std::uint32_t>(a_.first[j]));
      return a_.members[set * a_.rows + row_] ? 1 : 2;
    }
    const std::uint32_t place = places_[j];
    return ((left.lower < place) & (place <= left.upper)) | (left.missing & (place == split.last)) ? 1 : 2;
  }

  // Ratios and changes of the two edges below split s.
  void find_edges(std::size_t s, double* its) {
    const Intervals::Split& split = a_.intervals.splits[s];
    const std::uint8_t state = state_at(s, split);
    const std::size_t cell = cells_[s_.column[s]];
    const double* masses = a_.masses + 2 * s * a_.width + cell;
    const double m[2] = {masses[0], masses[a_.width]};
    state_[s_.depth[s]] = state;
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
      const double* same = &edges_[s_.depth[static_cast<std::size_t>(split.same) / 2] * kEdges];
      inverse_above = Real::load(same + kInverse), rho_above = Real::load(same + kRho);
    }
    inverse.store(its + kInverse);
    rho.store(its + kRho);
    (q * inverse_above).store(its + kRatio + side * T);
    (nodes_.drawn * Real::all(m[1 - side]) * inverse_above).store(its + kRatio + (1 - side) * T);
    (rho - rho_above).store(its + kChange + side * T);
    (nodes_.parted - rho_above).store(its + kChange + (1 - side) * T);
  }

  // What both leaves below split s add up to, P being 1 there; add the same times their changes to its column.
  Real add_leaves_below(std::size_t s, std::size_t level, Real p, std::size_t k) {
    const double* its = &edges_[level * kEdges];
    const Real left = Real::load(its + kRatio) * Real::all(s_.leaves[2 * s * s_.outputs + k]);
    const Real right = Real::load(its + kRatio + T) * Real::all(s_.leaves[(2 * s + 1) * s_.outputs + k]);
    if (state_[level] != 0) {
      const Real change = left * Real::load(its + kChange) + right * Real::load(its + kChange + T);
      add_to(effect(s_.column[s], k), p * change);
    }
    return left + right;
  }

  void add_leaves(std::size_t s, std::size_t level, Real p) {
    for (std::size_t k = 0; k < s_.outputs; ++k) (p * add_leaves_below(s, level, p, k)).store(total(level, k));
  }

  void add_last(std::size_t s, std::size_t level, Real p) {
    for (std::size_t k = 0; k < s_.outputs; ++k) hand_up(s, level, k, p * add_leaves_below(s, level, p, k));
  }

  // Hand what the subtree of split s sums up to its edge's column and to its parent.
  void hand_up(std::size_t s, std::size_t level, std::size_t k, Real sum) {
    add_to(total(level - 1, k), sum);
    if (state_[level - 1] == 0) return;
    const double* change = &edges_[(level - 1) * kEdges + kChange + s_.side[s] * T];
    add_to(effect(s_.column[s_.parent[s]], k), sum * Real::load(change));
  }

  void close(std::size_t level) {
    if (level == 0) {
      for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] += total_[i];
      return;
    }
    for (std::size_t k = 0; k < s_.outputs; ++k) hand_up(open_[level], level, k, Real::load(total(level, k)));
  }

  void write() {
    for (std::size_t k = 0; k < s_.outputs; ++k) {
      a_.base[row_ * s_.outputs + k] += integral<T>(a_, 1, &mean_[k * T]);
      for (std::size_t q = 0; q < 3; ++q) {
        for (std::size_t j = 0; j < s_.columns; ++j) {
          a_.sums[((row_ * 3 + q) * s_.columns + j) * s_.outputs + k] += integral<T>(a_, q, effect(j, k));
        }
      }
    }
  }

  static void add_to(double* at, Real more) { (Real::load(at) + more).store(at); }
  double* total(std::size_t level, std::size_t k) { return &total_[(level * s_.outputs + k) * T]; }
  double* effect(std::size_t j, std::size_t k) { return &effect_[(j * s_.outputs + k) * T]; }

  const ContributionsTask& a_;
  const Splits& s_;
  std::size_t row_ = 0;
  const std::uint32_t *cells_ = nullptr, *places_ = nullptr;
  // of each open level
  std::vector<std::size_t> open_;
  std::vector<std::uint8_t> state_;
  std::vector<double, InLines<double>> edges_, total_, effect_, mean_;
  const Quadrature<T> nodes_;
};

// Up to this many rows share too few divisions to pay for a table.
constexpr std::size_t kRowByRow = 3;

template <std::size_t T>
void pass(const ContributionsTask& task) {
  if (task.rows <= kRowByRow) {
    RowByRow<T>(task).add();
  } else {
    Contributions<T>(task).add();
  }
}

inline AddContributions contributions_of(std::size_t nodes) {
  return nodes == 4 ? &pass<4> : nodes == 8 ? &pass<8> : nullptr;
}

}  // namespace
}  // namespace limes
