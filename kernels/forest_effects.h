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
// V right. Adds to effects (rows, columns, width, outputs).
using EffectsOfRows = void (*)(const Splits&, Table probabilities, Table shares, const std::uint32_t* cells,
                               std::size_t rows, double* effects);

EffectsOfRows portable_effects(std::size_t width);
EffectsOfRows avx2_effects(std::size_t width);
EffectsOfRows avx512_effects(std::size_t width);

template <typename Lanes, std::size_t W>
class CellEffects {
 public:
  CellEffects(const Splits& splits, Table probabilities, Table shares)
      : s_(splits),
        path_(splits, probabilities),
        shares_(shares),
        effect_(splits.columns * splits.outputs * path_.width() * kBlock),
        nested_(splits.levels * splits.outputs * kBlock),
        scaled_(kBlock),
        nearest_(splits.columns),
        hidden_(splits.levels),
        ratios_(path_.width()) {}

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
    std::memset(nested(level, 0), 0, s_.outputs * kBlock * sizeof(double));
    if (!s_.has_leaf[s]) return;
    for (std::size_t k = 0; k < s_.outputs; ++k) add_leaves(s, level, k);
  }

  void close(std::size_t level) {
    if (level == 0) return;
    const std::size_t s = path_.open(level), above = s_.parent[s], j = s_.column[above], side = s_.side[s];
    const std::size_t outer = hidden_[level];
    const auto inverse = Lanes::template load_table<W>(share(above, side));
    const std::int64_t* cells = path_.cells(j);
    for (std::size_t k = 0; k < s_.outputs; ++k) {
      const double *sums = path_.total(level, k), *deeper = nested(level, k);
      double* upper = path_.total(level - 1, k);
      for (std::size_t i = 0; i < kBlock; i += Lanes::kRows) {
        const Real g = Lanes::load(sums + i);
        Lanes::store(upper + i, Lanes::add(Lanes::load(upper + i), g));
        const Real direct = Lanes::subtract(g, Lanes::load(deeper + i));
        const Real factor = Lanes::template look_up<W>(inverse, Lanes::load_cells(cells + i));
        Lanes::store(&scaled_[i], Lanes::multiply(direct, factor));
      }
      if (outer > 0) add(nested(outer, k), sums);
      spread(j, k, share(above, 2 + side));
    }
    nearest_[j] = outer;
  }

 private:
  using Real = typename Lanes::Real;

  double* effect(std::size_t j, std::size_t k, std::size_t b) {
    return &effect_[((j * s_.outputs + k) * path_.width() + b) * kBlock];
  }
  double* nested(std::size_t level, std::size_t k) { return &nested_[(level * s_.outputs + k) * kBlock]; }
  const double* share(std::size_t split, std::size_t quantity) const {
    return shares_.data + (split * 4 + quantity) * shares_.width;
  }

  // Leaves are edges on the split's column: their P over the interval's probability is that of the last edge above.
  void add_leaves(std::size_t s, std::size_t level, std::size_t k) {
    const double left = s_.leaves[2 * s * s_.outputs + k], right = s_.leaves[(2 * s + 1) * s_.outputs + k];
    const std::size_t width = path_.width(), j = s_.column[s], outer = nearest_[j];
    const double *ratio_left = path_.table(s, 0), *ratio_right = path_.table(s, 1);
    for (std::size_t v = 0; v < width; ++v) ratios_[v] = ratio_left[v] * left + ratio_right[v] * right;
    const auto sums = Lanes::template load_table<W>(ratios_.data());
    const std::int64_t* cells = path_.cells(j);
    const double* probability = path_.probability(level);
    double* totals = path_.total(level, k);
    for (std::size_t i = 0; i < kBlock; i += Lanes::kRows) {
      const Real factor = Lanes::template look_up<W>(sums, Lanes::load_cells(cells + i));
      Lanes::store(totals + i, Lanes::multiply(Lanes::load(probability + i), factor));
    }
    if (outer > 0) {
      const std::size_t below = path_.open(outer);
      const auto inverse = Lanes::template load_table<W>(share(s_.parent[below], s_.side[below]));
      for (std::size_t i = 0; i < kBlock; i += Lanes::kRows) {
        const Real factor = Lanes::template look_up<W>(inverse, Lanes::load_cells(cells + i));
        Lanes::store(&scaled_[i], Lanes::multiply(Lanes::load(probability + i), factor));
      }
      add(nested(outer, k), totals);
    } else {
      std::memcpy(scaled_.data(), probability, kBlock * sizeof(double));
    }
    const double *on_left = share(s, 2), *on_right = share(s, 3);
    for (std::size_t b = 0; b < width; ++b) ratios_[b] = left * on_left[b] + right * on_right[b];
    spread(j, k, ratios_.data());
  }

  static void add(double* sums, const double* more) {
    for (std::size_t i = 0; i < kBlock; i += Lanes::kRows) {
      Lanes::store(sums + i, Lanes::add(Lanes::load(sums + i), Lanes::load(more + i)));
    }
  }

  // Add the scaled sums to every cell, times the cell's share; an interval reaches few cells.
  void spread(std::size_t j, std::size_t k, const double* shares) {
    for (std::size_t b = 0; b < path_.width(); ++b) {
      if (shares[b] == 0.0) continue;
      const Real share = Lanes::all(shares[b]);
      double* effects = effect(j, k, b);
      for (std::size_t i = 0; i < kBlock; i += Lanes::kRows) {
        Lanes::store(effects + i, Lanes::multiply_add(Lanes::load(&scaled_[i]), share, Lanes::load(effects + i)));
      }
    }
  }

  const Splits& s_;
  Path<Lanes, W> path_;
  const Table shares_;
  std::vector<double> effect_, nested_, scaled_;
  // level of the last edge on each column above the path's end, 0 without one, and of what it hides
  std::vector<std::size_t> nearest_, hidden_;
  std::vector<double> ratios_;
};

template <typename Lanes, std::size_t W>
void effects_of_rows(const Splits& splits, Table probabilities, Table shares, const std::uint32_t* cells,
                     std::size_t rows, double* effects) {
  CellEffects<Lanes, W> block(splits, probabilities, shares);
  for (std::size_t first = 0; first < rows; first += kBlock) {
    const std::size_t count = rows - first < kBlock ? rows - first : kBlock;
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
