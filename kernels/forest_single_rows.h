// The pass of forest_contributions.h for rows one after the other: of one row a split has one cell and one state, whose
// numbers need no table. They are the same to the last bit.
//
// A row streams all splits through the cache, so that these are packed: what the walk reads of a split is one record, and
// the probabilities in the row's cells lie apart from those in others, column by column in the order of the splits.
//
// No state is a branch, which none could foresee. The edges below a split know what the splits of the same column below
// them need: in the interval of a row t, 1 - t, 1 / q and ρ; in another 0, 1, 1 / m and 0, with which the same products are
// those of state 0.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "contribution_nodes.h"
#include "intervals.h"
#include "splits.h"

namespace limes {

// One for each set of instructions, for 4 or 8 nodes; null where the compiler does not know it.
AddContributions portable_single_rows(std::size_t nodes);
AddContributions avx2_single_rows(std::size_t nodes);
AddContributions avx512_single_rows(std::size_t nodes);

namespace {

template <std::size_t T>
class SingleRows {
 public:
  explicit SingleRows(const ContributionsTask& task)
      : a_(task),
        s_(task.splits),
        outputs_(s_.outputs),
        edges_(2 * (s_.levels + 1)),
        basis_(2 * (s_.levels + 1), &inside_),
        effects_(s_.levels + 1),
        edge_above_(s_.levels + 1),
        total_((s_.levels + 1) * outputs_ * T),
        effect_((s_.columns + 1) * outputs_ * T),
        masses_(s_.columns),
        places_(s_.columns),
        has_sets_(std::any_of(task.first, task.first + s_.columns, [](std::int64_t first) { return first >= 0; })) {
    const Quadrature<T> nodes(task);
    inside_.set(nodes.kept, nodes.drawn, nodes.parted, 1.0);
    outside_.set(Real::all(0.0), Real::all(1.0), Real::all(0.0), 0.0);
    // above all roots, and where no edge above is on a split's column: q = 1, ρ = 0, and no column to add to
    Edge& top = edges_[0];
    Real::all(1.0).store(top.reach);
    Real::all(0.0).store(top.change);
    Real::all(1.0).store(top.inverse);
    Real::all(0.0).store(top.rho);
    effects_[0] = &effect_[s_.columns * outputs_ * T];
  }

  void add() {
    const std::size_t columns = s_.columns, splits = s_.count();
    for (row_ = 0; row_ < a_.rows; ++row_) {
      for (std::size_t j = 0; j < columns; ++j) {
        const std::size_t at = row_ * columns + j;
        masses_[j] = a_.masses + 2 * splits * a_.cells[at];
        places_[j] = a_.places[at] == a_.intervals.start[j + 1] - 1 ? kMissing : a_.places[at];
      }
      std::fill(effect_.begin(), effect_.end(), 0.0);
      std::fill(total_.begin(), total_.begin() + static_cast<std::ptrdiff_t>(outputs_ * T), 0.0);
      const auto walk = outputs_ > 1 ? &SingleRows::walk<false, true>
                        : has_sets_  ? &SingleRows::walk<true, true>
                                     : &SingleRows::walk<true, false>;
      for (std::size_t i = 0; i < a_.count; ++i) (this->*walk)(a_.trees[i]);
      write();
    }
  }

 private:
  using Real = Nodes<T>;
  using Record = Intervals::Record;
  static constexpr std::uint32_t kMissing = ~std::uint32_t{0};

  // P of the node below an edge, the change of its column's ρ, and 1 / q and ρ.
  struct alignas(64) Edge {
    double reach[T], change[T], inverse[T], rho[T];
  };
  // Of splits of a column whose last edge above has the row in its interval, or not.
  struct alignas(64) Basis {
    double kept[T], drawn[T], parted[T], whole;
    bool is_inside;
    void set(Real t, Real rest, Real change, double share) {
      t.store(kept), rest.store(drawn), change.store(parted);
      whole = share, is_inside = share > 0.0;
    }
  };

  // Without sets, and with one output, loops and branches over these vanish.
  template <bool kOneOutput, bool kMayHaveSets>
  void walk(std::size_t tree) {
    const std::size_t outputs = kOneOutput ? 1 : outputs_;
    const Record* s = &a_.intervals.records[s_.starts[tree]];
    const Record* const end = s + (s_.starts[tree + 1] - s_.starts[tree]);
    const double* leaves = &s_.leaves[2 * s_.starts[tree] * outputs];
    Edge* const edges = edges_.data();
    double* const totals = total_.data();
    std::size_t open = 1;  // levels with an unfinished subtree; that of all roots is finished last
    for (; s < end; ++s, leaves += 2 * outputs) {
      const std::size_t level = s->edge / 2 + 1;
      while (open > level) close(--open, outputs);
      ask_for(s[Intervals::kAhead]);
      const Edge &above = edges[s->edge], &same = edges[s->same];
      const Basis& basis = *basis_[s->same];
      const bool is_right = !kMayHaveSets || a_.first[s->column] < 0 ? goes_right(*s) : is_outside(*s);
      const std::size_t taken = is_right & basis.is_inside, rest = 1 - taken;
      const double *m = masses_[s->column] + 2 * std::size_t{s->rank}, mass = m[taken], other = m[rest];
      const Real p = Real::load(above.reach), inverse = Real::load(same.inverse), rho = Real::load(same.rho);
      const Real kept = Real::load(basis.kept), drawn = Real::load(basis.drawn);
      double* const effects = &effect_[s->column * outputs * T];
      // what the leaves below add to the effect, and to the sum
      const auto add_leaves = [&](std::size_t k) {
        const double here = leaves[taken * outputs + k], there = leaves[rest * outputs + k];
        const Real sum = kept * Real::all(here) + drawn * Real::all(mass * here + other * there);
        const Real change = Real::all(basis.whole * ((1.0 - mass) * here - other * there)) - rho * sum;
        add_to(effects + k * T, p * (inverse * change));
        return p * (inverse * sum);
      };
      if (s->flags & Record::kIsLast) {
        const Real change = Real::load(above.change);
        double *upper = totals + (level - 1) * outputs * T, *effects_above = effects_[level - 1];
        for (std::size_t k = 0; k < outputs; ++k) {
          const Real sum = add_leaves(k);
          add_to(upper + k * T, sum);
          add_to(effects_above + k * T, sum * change);
        }
        continue;
      }
      double* const total = totals + level * outputs * T;
      if (s->flags & Record::kHasLeaf) {
        for (std::size_t k = 0; k < outputs; ++k) add_leaves(k).store(total + k * T);
      } else {
        for (std::size_t k = 0; k < outputs; ++k) Real::all(0.0).store(total + k * T);
      }
      Edge &on = edges[2 * level + taken], &off = edges[2 * level + rest];
      const Real q = kept + drawn * Real::all(mass);
      const Real below = basis.is_inside || mass > 0.0 ? Real::all(1.0) / q : Real::all(0.0);
      const Real rho_below = Real::all(basis.whole * (1.0 - mass)) * below;
      (p * (q * inverse)).store(on.reach);
      (rho_below - rho).store(on.change);
      below.store(on.inverse);
      rho_below.store(on.rho);
      (p * (drawn * Real::all(other) * inverse)).store(off.reach);
      (Real::load(basis.parted) - rho).store(off.change);
      Real::all(inverse_of(other)).store(off.inverse);
      Real::all(0.0).store(off.rho);
      basis_[2 * level + taken] = &basis, basis_[2 * level + rest] = &outside_;
      effects_[level] = effects, edge_above_[level] = s->edge;
      open = level + 1;
    }
    while (open > 1) close(--open, outputs);
  }

  // Whether a row in the interval above a split goes right.
  bool goes_right(const Record& s) const {
    const std::uint32_t place = places_[s.column];
    const bool is_left = (place <= s.upper) | (((s.flags & Record::kMissingLeft) != 0) & (place == kMissing));
    return !is_left;
  }
  bool is_outside(const Record& s) const {
    const auto set = static_cast<std::size_t>(s.upper - static_cast<std::uint32_t>(a_.first[s.column]));
    return !a_.members[set * a_.rows + row_];
  }

  // Probabilities of a split that is soon reached: no processor foresees where they are.
  void ask_for([[maybe_unused]] const Record& s) const {
#if defined(__GNUC__)
    __builtin_prefetch(masses_[s.column] + 2 * std::size_t{s.rank});
#endif
  }

  // Hand what a finished subtree has summed up to its edge's column and to its parent.
  LIMES_INLINE void close(std::size_t level, std::size_t outputs) {
    const Real change = Real::load(edges_[edge_above_[level]].change);
    double *effects = effects_[level - 1], *upper = &total_[(level - 1) * outputs * T];
    const double* total = &total_[level * outputs * T];
    for (std::size_t k = 0; k < outputs; ++k) {
      const Real sum = Real::load(total + k * T);
      add_to(upper + k * T, sum);
      add_to(effects + k * T, sum * change);
    }
  }

  void write() {
    for (std::size_t k = 0; k < outputs_; ++k) {
      a_.base[row_ * outputs_ + k] += integral<T>(a_, 1, &total_[k * T]);
      for (std::size_t q = 0; q < 3; ++q) {
        for (std::size_t j = 0; j < s_.columns; ++j) {
          a_.sums[((row_ * 3 + q) * s_.columns + j) * outputs_ + k] += integral<T>(a_, q, &effect_[(j * outputs_ + k) * T]);
        }
      }
    }
  }

  static LIMES_INLINE void add_to(double* at, Real more) { (Real::load(at) + more).store(at); }

  const ContributionsTask& a_;
  const Splits& s_;
  const std::size_t outputs_;
  std::size_t row_ = 0;
  Basis inside_, outside_;
  // of each edge of the open path: two a level, the first of which is above the root
  std::vector<Edge> edges_;
  std::vector<const Basis*> basis_;
  // of each open level: its column's effects, and the edge above it
  std::vector<double*> effects_;
  std::vector<std::size_t> edge_above_;
  std::vector<double, InLines<double>> total_, effect_;
  // of each column, of the row
  std::vector<const double*> masses_;
  std::vector<std::uint32_t> places_;
  const bool has_sets_;
};

template <std::size_t T>
void add_one_by_one(const ContributionsTask& task) {
  SingleRows<T>(task).add();
}

inline AddContributions single_rows_of(std::size_t nodes) {
  return nodes == 4 ? &add_one_by_one<4> : nodes == 8 ? &add_one_by_one<8> : nullptr;
}

}  // namespace
}  // namespace limes
