// The sums that standard errors of one explained row are made of: see pool.h.
#pragma once

#include "pool.h"

namespace limes {
namespace {

// Of one output of one explained row. With w_i here the share of a row, its weight over the number of rows:
//
//     e_i = (residual - rest) / sqrt(1 - w_i leverage)        c_i = w_i e_i        o_i = w_i (answer - other surrogate)
//     A_i = 2 c_i (surrogate - center)                        B_i = w_i ((answer - surrogate)² - its weighted mean)
//
// Where each coefficient is fitted by itself, the surrogate is no projection: B_i has the other surrogate, a mean, so that
// the weighted mean is the answers' variance, which A_i does not move.
//
// powers   over each column:      c², c⁴, o², o⁴, c (A + B), or c B for such coefficients, and the numbers of rows whose
//          answer and whose e differ from the usual one, and whose e is not negligible
// moved    over each column and sequence: c; in the end over the sequence: g = w_i influence e_i
// totals   the weighted mean; A², A B, B²; g², g⁴; the numbers of rows as above, on the side of influence > 0, then < 0
// sides    number of rows and sum of (w_i influence)², on the same two sides
//
// The usual e is that of more than half the rows, if there is one: the candidate that is left when different values cancel
// each other one by one.
template <typename Cell>
class Errors {
 public:
  Errors(const PoolRows<Cell>& pool, const ErrorSums& out)
      : pool_(pool),
        out_(out),
        columns_(pool.columns + 1),
        marks_(pool, pool.rows),
        sums_(marks_.groups()),
        table_(marks_.groups() * kCodes * kWide),
        numbers_(7 * pool.rows) {}

  void add(std::size_t n) {
    marks_.mark(pool_.instances + n * pool_.columns, 0, pool_.rows);
    for (std::size_t k = 0; k < out_.outputs; ++k) {
      look_up(n, k);
      const double mean = weighted_mean(), usual = usual_error(out_.rounding[k]);
      double* totals = out_.totals + (n * out_.outputs + k) * kTotals;
      std::fill(totals, totals + kTotals, 0.0);
      totals[0] = mean;
      by_column(n, k, mean, usual, totals + 1);
      by_side(k, usual, totals + 6, out_.sides + n * kSides);
    }
  }

 private:
  double* number(std::size_t which) { return &numbers_[which * pool_.rows]; }
  double* share() { return number(0); }
  double* error() { return number(1); }
  double* explained() { return number(2); }
  double* square() { return number(3); }
  double* other() { return number(4); }
  double* influence() { return number(5); }
  double* leverage() { return number(6); }

  // What each row has by itself.
  void look_up(std::size_t n, std::size_t k) {
    const double *weights = pool_.weights + n * columns_, center = out_.center[n * out_.outputs + k];
    const std::size_t each = pool_.rows / out_.parts;
    for (std::size_t part = 0; part < out_.parts; ++part) {
      tabulate(out_.coef + ((n * out_.outputs + k) * out_.parts + part) * columns_ * kFitted);
      for (std::size_t i = part * each; i < (part + 1) * each; ++i) {
        double value[kWide] = {};
        for (std::size_t group = 0; group < marks_.groups(); ++group) {
          const double* row = &table_[(group * kCodes + marks_.codes(group)[i]) * kWide];
          for (std::size_t q = 0; q < kWide; ++q) value[q] += row[q];
        }
        const double answer = out_.answers[i * out_.outputs + k], left = answer - value[out_.separate ? 1 : 2];
        share()[i] = weights[marks_.kept(i)];
        error()[i] = out_.residuals[i * out_.outputs + k] - value[0];
        other()[i] = answer - value[1];
        explained()[i] = value[2] - center;
        square()[i] = left * left;
        leverage()[i] = value[3];
        influence()[i] = value[4];
      }
    }
    const double *w = share(), *h = leverage();
    double *e = error(), *o = other(), *g = influence();
    for (std::size_t i = 0; i < pool_.rows; ++i) {
      e[i] /= std::sqrt(std::max(1.0 - w[i] * h[i], kLeastLeft));
      o[i] = w[i] * o[i] * (w[i] * o[i]);
      g[i] *= w[i];
    }
  }

  // The sum of the coefficients (1 + columns, kFitted) of each code of each group.
  void tabulate(const double* coef) {
    for (std::size_t group = 0; group < marks_.groups(); ++group) {
      double* table = &table_[group * kCodes * kWide];
      std::fill(table, table + kCodes * kWide, 0.0);
      const std::size_t first = group * kColumns, width = std::min(kColumns, columns_ - first);
      for (std::size_t bit = 0; bit < width; ++bit) {
        const std::size_t top = std::size_t{1} << bit;
        for (std::size_t code = 0; code < top; ++code) {
          for (std::size_t q = 0; q < kFitted; ++q) {
            table[(top + code) * kWide + q] = table[code * kWide + q] + coef[(first + bit) * kFitted + q];
          }
        }
      }
    }
  }

  double weighted_mean() {
    const double *w = share(), *s = square();
    double total = 0.0, sum = 0.0;
    for (std::size_t i = 0; i < pool_.rows; ++i) {
      total += w[i];
      sum += w[i] * s[i];
    }
    return sum / total;
  }

  double usual_error(double rounding) {
    const double* e = error();
    double candidate = e[0];
    std::size_t votes = 0;
    for (std::size_t i = 0; i < pool_.rows; ++i) {
      if (votes == 0) candidate = e[i];
      votes = std::abs(e[i] - candidate) > rounding ? votes - 1 : votes + 1;  // of the candidate itself: + 1, NaN too
    }
    return candidate;
  }

  bool differs(std::size_t i, std::size_t k, double usual) {
    return out_.differs[i * out_.outputs + k] != 0 && std::abs(error()[i] - usual) > out_.rounding[k];
  }

  void by_column(std::size_t n, std::size_t k, double mean, double usual, double* totals) {
    const std::size_t each = pool_.rows / out_.sequences;
    double* powers = out_.powers + (n * out_.outputs + k) * columns_ * kPowers;
    std::fill(powers, powers + columns_ * kPowers, 0.0);
    const double *w = share(), *e = error(), *x = explained(), *s = square(), *o = other(), *g = influence();
    for (std::size_t sequence = 0; sequence < out_.sequences; ++sequence) {
      double* moved = out_.moved + ((n * out_.outputs + k) * out_.sequences + sequence) * (columns_ + 1);
      double at_instance = 0.0;
      sums_.clear();
      for (std::size_t i = sequence * each; i < (sequence + 1) * each; ++i) {
        const double c = w[i] * e[i], a = 2.0 * c * x[i], b = w[i] * (s[i] - mean), step = g[i] * e[i];
        const double numbers[kWide] = {c,
                                       c * c,
                                       c * c * (c * c),
                                       o[i],
                                       o[i] * o[i],
                                       c * (out_.separate ? b : a + b),
                                       differs(i, k, usual) ? 1.0 : 0.0,
                                       std::abs(e[i]) > out_.negligible[k] ? 1.0 : 0.0};
        sums_.add(marks_, i, numbers);
        totals[0] += a * a;
        totals[1] += a * b;
        totals[2] += b * b;
        totals[3] += step * step;
        totals[4] += step * step * (step * step);
        at_instance += step;
      }
      for (std::size_t column = 0; column < columns_; ++column) {
        double total[kWide];
        sums_.of_column(column, total);
        moved[column] = total[0];
        for (std::size_t power = 0; power < kPowers; ++power) powers[column * kPowers + power] += total[1 + power];
      }
      moved[columns_] = at_instance;
    }
  }

  void by_side(std::size_t k, double usual, double* totals, double* sides) {
    const double *e = error(), *g = influence();
    std::fill(sides, sides + kSides, 0.0);
    for (std::size_t i = 0; i < pool_.rows; ++i) {
      if (g[i] == 0.0) continue;
      const std::size_t side = g[i] > 0.0 ? 0 : 1;
      totals[side] += differs(i, k, usual) ? 1.0 : 0.0;
      totals[2 + side] += std::abs(e[i]) > out_.negligible[k] ? 1.0 : 0.0;
      sides[side] += 1.0;
      sides[2 + side] += g[i] * g[i];
    }
  }

  // Least share of a residual that least squares is taken to leave of a row that decides its own fit.
  static constexpr double kLeastLeft = 0.01;

  const PoolRows<Cell>& pool_;
  const ErrorSums& out_;
  std::size_t columns_;
  Marks<Cell> marks_;
  CodeSums<kWide> sums_;
  std::vector<double> table_, numbers_;
};

template <typename Cell>
PoolLoops<Cell> pool_loops() {
  return {
      [](const PoolRows<Cell>& pool, const ValueSums& out) { sum_all(pool, out); },
      [](const PoolRows<Cell>& pool, const GramSums& out) {
        Gram<Cell> gram(pool, out);
        for (std::size_t n = 0; n < pool.count; ++n) gram.add(n);
      },
      [](const PoolRows<Cell>& pool, const ErrorSums& out) {
        Errors<Cell> errors(pool, out);
        for (std::size_t n = 0; n < pool.count; ++n) errors.add(n);
      },
  };
}

}  // namespace
}  // namespace limes
