// Weighted squares of what curves of cells leave of a pool's answers, for many explained rows.
//
// Pool row i has the cells c_ij and answers f_iq. Around an explained row it weighs w_i, and a surrogate leaves r_iq:
//
//     w_i = product of factor_j(c_ij)        r_iq = f_iq - base_q - sum of curve_jq(c_ij).
//
// Summed over i: w, w², and for each output w r², w² r² and w² r⁴, which a mean square and its error are made of.
#pragma once

#include "forest_path.h"

namespace limes {

// Cells (rows, columns) and answers (outputs, rows); rows are a multiple of kBlock.
struct Pool {
  std::size_t rows, columns, outputs;
  const std::uint32_t* cells;
  const double* answers;
};

// Of n explained rows: factors (n, columns, width), curves (n, columns, outputs, width) and bases (n, outputs).
struct Surrogates {
  std::size_t count, width;
  const double *factors, *curves, *bases;
};

// Writes weights (n, 2) and squares (n, outputs, 3).
using PoolSquares = void (*)(const Pool&, const Surrogates&, double* weights, double* squares);

PoolSquares portable_squares(std::size_t width);
PoolSquares avx2_squares(std::size_t width);
PoolSquares avx512_squares(std::size_t width);

template <typename Lanes, std::size_t W>
class Squares {
 public:
  Squares(const Pool& pool, const Surrogates& surrogates)
      : pool_(pool),
        surrogates_(surrogates),
        cells_(pool.columns * kBlock),
        weight_(kBlock),
        sums_(surrogates.count * sums_of_row() * Lanes::kRows) {}

  void add(double* weights, double* squares) {
    for (std::size_t first = 0; first < pool_.rows; first += kBlock) {
      for (std::size_t i = 0; i < kBlock; ++i) {
        for (std::size_t j = 0; j < pool_.columns; ++j) {
          cells_[j * kBlock + i] = Lanes::encode(pool_.cells[(first + i) * pool_.columns + j]);
        }
      }
      for (std::size_t n = 0; n < surrogates_.count; ++n) {
        weigh(n);
        for (std::size_t q = 0; q < pool_.outputs; ++q) square(n, q, pool_.answers + q * pool_.rows + first);
      }
    }
    for (std::size_t n = 0; n < surrogates_.count; ++n) {
      for (std::size_t at = 0; at < 2; ++at) *weights++ = total(n, at);
      for (std::size_t at = 2; at < sums_of_row(); ++at) *squares++ = total(n, at);
    }
  }

 private:
  using Real = typename Lanes::Real;
  // registers that share a loaded table, and hide how long an addition takes
  static constexpr std::size_t kTogether = 4;

  std::size_t sums_of_row() const { return 2 + 3 * pool_.outputs; }
  std::size_t width() const { return W > 0 ? W : surrogates_.width; }
  double* sums(std::size_t n, std::size_t at) { return &sums_[(n * sums_of_row() + at) * Lanes::kRows]; }

  double total(std::size_t n, std::size_t at) {
    double total = 0.0;
    for (std::size_t lane = 0; lane < Lanes::kRows; ++lane) total += sums(n, at)[lane];
    return total;
  }

  void weigh(std::size_t n) {
    const double* factors = surrogates_.factors + n * pool_.columns * width();
    Real sum = Lanes::load(sums(n, 0)), square = Lanes::load(sums(n, 1));
    for (std::size_t i = 0; i < kBlock; i += kTogether * Lanes::kRows) {
      Real weight[kTogether];
      for (Real& one : weight) one = Lanes::all(1.0);
      for (std::size_t j = 0; j < pool_.columns; ++j) {
        const auto table = Lanes::template load_table<W>(factors + j * width());
        for (std::size_t u = 0; u < kTogether; ++u) {
          weight[u] = Lanes::multiply(weight[u], look_up(table, j, i + u * Lanes::kRows));
        }
      }
      for (std::size_t u = 0; u < kTogether; ++u) {
        Lanes::store(&weight_[i + u * Lanes::kRows], weight[u]);
        sum = Lanes::add(sum, weight[u]);
        square = Lanes::multiply_add(weight[u], weight[u], square);
      }
    }
    Lanes::store(sums(n, 0), sum);
    Lanes::store(sums(n, 1), square);
  }

  void square(std::size_t n, std::size_t q, const double* answers) {
    const double* curves = surrogates_.curves + (n * pool_.columns * pool_.outputs + q) * width();
    const Real base = Lanes::all(surrogates_.bases[n * pool_.outputs + q]);
    double* into = sums(n, 2 + 3 * q);
    Real first = Lanes::load(into), second = Lanes::load(into + Lanes::kRows);
    Real fourth = Lanes::load(into + 2 * Lanes::kRows);
    for (std::size_t i = 0; i < kBlock; i += kTogether * Lanes::kRows) {
      Real fitted[kTogether];
      for (Real& one : fitted) one = base;
      for (std::size_t j = 0; j < pool_.columns; ++j) {
        const auto table = Lanes::template load_table<W>(curves + j * pool_.outputs * width());
        for (std::size_t u = 0; u < kTogether; ++u) {
          fitted[u] = Lanes::add(fitted[u], look_up(table, j, i + u * Lanes::kRows));
        }
      }
      for (std::size_t u = 0; u < kTogether; ++u) {
        const std::size_t at = i + u * Lanes::kRows;
        const Real rest = Lanes::subtract(Lanes::load(answers + at), fitted[u]), weight = Lanes::load(&weight_[at]);
        const Real weighted = Lanes::multiply(weight, Lanes::multiply(rest, rest));
        first = Lanes::add(first, weighted);
        second = Lanes::multiply_add(weight, weighted, second);
        fourth = Lanes::multiply_add(weighted, weighted, fourth);
      }
    }
    Lanes::store(into, first);
    Lanes::store(into + Lanes::kRows, second);
    Lanes::store(into + 2 * Lanes::kRows, fourth);
  }

  template <typename LoadedTable>
  Real look_up(const LoadedTable& table, std::size_t j, std::size_t i) const {
    return Lanes::template look_up<W>(table, Lanes::load_cells(&cells_[j * kBlock + i]));
  }

  const Pool& pool_;
  const Surrogates& surrogates_;
  std::vector<std::int64_t> cells_;
  std::vector<double> weight_, sums_;
};

template <typename Lanes, std::size_t W>
void pool_squares(const Pool& pool, const Surrogates& surrogates, double* weights, double* squares) {
  Squares<Lanes, W>(pool, surrogates).add(weights, squares);
}

template <typename Lanes>
PoolSquares squares_of_width(std::size_t width) {
  return of_width<PoolSquares>(width, &pool_squares<Lanes, 4>, &pool_squares<Lanes, 8>, &pool_squares<Lanes, 12>,
                               &pool_squares<Lanes, 16>, &pool_squares<Lanes, 0>);
}

}  // namespace limes
