// Means of a forest given each cell of each column, E_w[f | x_j in cell b], less a number a row and column.
//
// Let m_e be the probability of edge e's interval under the row's law of its column j, V_e(b) the same given cell b
// (the same for all rows), and G(e) the sum of value · P over the leaves below e. A leaf's probability given cell b is
// P · V_e(b) / m_e, e being the last edge on j above it:
//
//     E_w[f | x_j in b] = sum over edges e on j of  U(e) V_e(b) / m_e  +  leaves without an edge on j, the same for all b
//     U(e) = G(e) - sum of G(e') over the next edges e' on j below e.
#pragma once

#include "forest_path.h"

namespace limes {

// Tables (splits, 4, width): of probabilities as in forest_block.h, and of shares: 1 / m left, 1 / m right, V left,
// V right, less a number an edge. Adds to effects (rows, columns, width, outputs).
using EffectsOfRows = void (*)(const Splits&, Table probabilities, Table shares, const std::uint32_t* cells,
                               std::size_t rows, double* effects);

EffectsOfRows portable_effects(std::size_t width);
EffectsOfRows avx2_effects(std::size_t width);
EffectsOfRows avx512_effects(std::size_t width);

// An edge costs much beside its rows: where there are many, a block has four times as many.
constexpr std::size_t kLargeBlock = 4 * kBlock;

template <typename Lanes, std::size_t W>
class CellEffects {
 public:
  CellEffects(const Splits& splits, Table probabilities, Table shares, std::size_t size)
      : s_(splits),
        path_(splits, probabilities, size),
        shares_(shares),
        size_(size),
        effect_(splits.columns * splits.outputs * path_.width() * size_),
        nested_(splits.levels * splits.outputs * size_),
        scaled_(size_),
        nearest_(splits.columns),
        hidden_(splits.levels),
        has_nested_(splits.levels),
        ratios_(path_.width()),
        combined_(path_.width()),
        cell_(path_.width() + 1),
        weight_(path_.width() + 1) {}

  void explain(const std::uint32_t* cells, std::size_t rows, double* effects) {
    std::memset(effect_.data(), 0, effect_.size() * sizeof(double));
    path_.take(cells, rows);
    path_.walk(*this);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < s_.columns; ++j) {
        for (std::size_t b = 0; b < path_.width(); ++b) {
          for (std::size_t k = 0; k < s_.outputs; ++k) *effects++ += effect(j, k, b)[i];
        }
      }
    }
  }

  void enter(std::size_t s, std::size_t level) {
    if (level > 0) {
      const std::size_t j = s_.column[s_.parent[s]];
      hidden_[level] = nearest_[j];
      nearest_[j] = level;
    }
    has_nested_[level] = false;
    if (!s_.has_leaf[s]) return;
    const std::size_t outer = nearest_[s_.column[s]];
    for (std::size_t k = 0; k < s_.outputs; ++k) add_leaves(s, level, outer, k);
    if (outer > 0) has_nested_[outer] = true;
  }

  void close(std::size_t level) {
    if (level == 0) return;
    const std::size_t s = path_.open(level), above = s_.parent[s], j = s_.column[above], side = s_.side[s];
    const std::size_t outer = hidden_[level];
    const auto inverse = Lanes::template load_table<W>(share(above, side));
    const std::int64_t* cells = path_.cells(j);
    select(share(above, 2 + side));
    for (std::size_t k = 0; k < s_.outputs; ++k) {
      const double *sums = path_.total(level, k), *deeper = has_nested_[level] ? nested(level, k) : nullptr;
      double* upper = path_.total(level - 1, k);
      spread(j, k, [&](std::size_t i) {
        const Real g = Lanes::load(sums + i);
        Lanes::store(upper + i, Lanes::add(Lanes::load(upper + i), g));
        const Real direct = deeper == nullptr ? g : Lanes::subtract(g, Lanes::load(deeper + i));
        return Lanes::multiply(direct, Lanes::template look_up<W>(inverse, Lanes::load_cells(cells + i)));
      });
      if (outer > 0) nest(outer, k, sums);
    }
    if (outer > 0) has_nested_[outer] = true;
    nearest_[j] = outer;
  }

 private:
  using Real = typename Lanes::Real;
  // cells that are added to in one loop over rows
  static constexpr std::size_t kTogether = 4;

  double* effect(std::size_t j, std::size_t k, std::size_t b) {
    return &effect_[((j * s_.outputs + k) * path_.width() + b) * size_];
  }
  double* nested(std::size_t level, std::size_t k) { return &nested_[(level * s_.outputs + k) * size_]; }
  const double* share(std::size_t split, std::size_t quantity) const {
    return shares_.data + (split * 4 + quantity) * shares_.width;
  }

  // Leaves are edges on the split's column: their P over the interval's probability is that of the last edge above,
  // at level `outer`.
  void add_leaves(std::size_t s, std::size_t level, std::size_t outer, std::size_t k) {
    const double left = s_.leaves[2 * s * s_.outputs + k], right = s_.leaves[(2 * s + 1) * s_.outputs + k];
    const std::size_t width = path_.width(), j = s_.column[s];
    const double *ratio_left = path_.table(s, 0), *ratio_right = path_.table(s, 1);
    for (std::size_t v = 0; v < width; ++v) ratios_[v] = ratio_left[v] * left + ratio_right[v] * right;
    const auto sums = Lanes::template load_table<W>(ratios_.data());
    const std::int64_t* cells = path_.cells(j);
    const double* probability = path_.probability(level);
    double* totals = path_.total(level, k);
    const auto reach = [&](std::size_t i) {
      const Real p = Lanes::load(probability + i);
      Lanes::store(totals + i, Lanes::multiply(p, Lanes::template look_up<W>(sums, Lanes::load_cells(cells + i))));
      return p;
    };
    const double *on_left = share(s, 2), *on_right = share(s, 3);
    for (std::size_t b = 0; b < width; ++b) combined_[b] = left * on_left[b] + right * on_right[b];
    select(combined_.data());
    if (outer == 0) {
      spread(j, k, reach);
      return;
    }
    const std::size_t below = path_.open(outer);
    const auto inverse = Lanes::template load_table<W>(share(s_.parent[below], s_.side[below]));
    spread(j, k, [&](std::size_t i) {
      return Lanes::multiply(reach(i), Lanes::template look_up<W>(inverse, Lanes::load_cells(cells + i)));
    });
    nest(outer, k, totals);
  }

  // Add what an edge sums up to the next edge on the same column above it.
  void nest(std::size_t outer, std::size_t k, const double* more) {
    double* sums = nested(outer, k);
    if (!has_nested_[outer]) {
      std::memcpy(sums, more, size_ * sizeof(double));
      return;
    }
    for (std::size_t i = 0, size = size_; i < size; i += Lanes::kRows) {
      Lanes::store(sums + i, Lanes::add(Lanes::load(sums + i), Lanes::load(more + i)));
    }
  }

  // Take the cells with a share other than 0: an interval reaches few, or all but few.
  void select(const double* shares) {
    selected_ = 0;
    for (std::size_t b = 0; b < path_.width(); ++b) {
      cell_[selected_] = b;
      weight_[selected_] = shares[b];
      selected_ += shares[b] != 0.0;
    }
  }

  // Add what `scaled` returns for rows from i on to every selected cell, times the cell's share.
  template <typename Scaled>
  void spread(std::size_t j, std::size_t k, Scaled scaled) {
    switch (selected_) {
      case 0: return add<0>(j, k, 0, scaled);
      case 1: return add<1>(j, k, 0, scaled);
      case 2: return add<2>(j, k, 0, scaled);
      case 3: return add<3>(j, k, 0, scaled);
      case kTogether: return add<kTogether>(j, k, 0, scaled);
      default: break;
    }
    add<kTogether>(j, k, 0, [&](std::size_t i) {
      const Real x = scaled(i);
      Lanes::store(&scaled_[i], x);
      return x;
    });
    const auto again = [&](std::size_t i) { return Lanes::load(&scaled_[i]); };
    for (std::size_t n = kTogether; n < selected_; ++n) add<1>(j, k, n, again);
  }

  template <std::size_t N, typename Scaled>
  void add(std::size_t j, std::size_t k, std::size_t first, Scaled scaled) {
    double* effects[N + 1];
    Real shares[N + 1];
    for (std::size_t n = 0; n < N; ++n) {
      effects[n] = effect(j, k, cell_[first + n]);
      shares[n] = Lanes::all(weight_[first + n]);
    }
    for (std::size_t i = 0, size = size_; i < size; i += Lanes::kRows) {
      const Real x = scaled(i);
      for (std::size_t n = 0; n < N; ++n) {
        Lanes::store(effects[n] + i, Lanes::multiply_add(x, shares[n], Lanes::load(effects[n] + i)));
      }
    }
  }

  const Splits& s_;
  Path<Lanes, W> path_;
  const Table shares_;
  const std::size_t size_;  // rows of a block
  std::vector<double> effect_, nested_, scaled_;
  // level of the last edge on each column above the path's end, 0 without one, and of what it hides
  std::vector<std::size_t> nearest_, hidden_;
  std::vector<std::uint8_t> has_nested_;  // whether an edge on the same column has been closed below a level
  std::vector<double> ratios_, combined_;
  // cells that an edge changes, and their shares
  std::size_t selected_ = 0;
  std::vector<std::size_t> cell_;
  std::vector<double> weight_;
};

template <typename Lanes, std::size_t W>
void effects_of_rows(const Splits& splits, Table probabilities, Table shares, const std::uint32_t* cells,
                     std::size_t rows, double* effects) {
  const std::size_t size = 2 * rows > kLargeBlock ? kLargeBlock : kBlock;
  CellEffects<Lanes, W> block(splits, probabilities, shares, size);
  for (std::size_t first = 0; first < rows; first += size) {
    const std::size_t count = rows - first < size ? rows - first : size;
    block.explain(cells + first * splits.columns, count,
                  effects + first * splits.columns * shares.width * splits.outputs);
  }
}

template <typename Lanes>
EffectsOfRows effects_of_width(std::size_t width) {
  return of_width<EffectsOfRows>(width, &effects_of_rows<Lanes, 4>, &effects_of_rows<Lanes, 8>,
                                 &effects_of_rows<Lanes, 12>, &effects_of_rows<Lanes, 16>, &effects_of_rows<Lanes, 0>);
}

}  // namespace limes
