// What single words change around random sets of words, for the logistic link of a margin that is normalised.
//
// With c_k and a over words, and N(S) = sum_{j in S} a_j + excess(S) of the words that share columns,
//     f_k(S) = 1 / (1 + exp(-b_k - sum_{j in S} c_kj / sqrt(N(S)))),     the fraction being 0 where N is 0.
// For sets S of given sizes r, drawn uniformly, and D_kj = f_k(S with j) - f_k(S without j),
//     effects_kj = sum_S D_kj (add_0[r] where j is outside S, drop_0[r] where it is inside),
// the same with add_1 and drop_1, of all words together, and sums over S of law[r] e and law[r] e², e = f_k(S) - base_k.
//
// Sets are the first places of a permutation that is shuffled as far as needed, by splitmix64; where the next one has the
// same size it takes the places behind these, so that what one has the other lacks. The loop over words is plain, so that
// compilers make four or eight of them at once. subsets_avx2.cpp is this file once more.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

namespace limes {

// Words (d,) and outputs (m,): c (m, d), a (d,), b and base (m,). Of each group of words that share columns its members,
// and the excess of each subset; groups begin at `member_start` and `excess_start` (groups + 1,).
struct SubsetModel {
  std::size_t words, outputs, groups;
  const double *c, *a, *b, *base;
  const std::int64_t *member, *member_start;
  const double* excess;
  const std::int64_t* excess_start;
};

// Sizes of the sets (n,), and weights by size (5, d + 1): add_0, drop_0, add_1, drop_1 and the law.
struct SubsetDraws {
  std::size_t sets;
  const std::int64_t* kept;
  const double* weights;
  std::uint64_t seed;
};

// effects (m, d), totals (m, 3)
using AddSubsets = void (*)(const SubsetModel&, const SubsetDraws&, double* effects, double* totals);

AddSubsets portable_subsets();
AddSubsets avx2_subsets();

namespace {

class SubsetEffects {
 public:
  SubsetEffects(const SubsetModel& model, const SubsetDraws& draws)
      : m_(model), draws_(draws), state_(draws.seed), order_(model.words), inside_(model.words),
        outside_(model.words), sign_(model.words), step_(model.words), gain_(model.words), change_(model.words) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
  }

  void add(double* effects, double* totals) {
    const std::size_t d = m_.words;
    for (std::size_t i = 0; i < draws_.sets; ++i) {
      const auto r = static_cast<std::size_t>(draws_.kept[i]);
      draw(r, i % 2 == 1 && draws_.kept[i] == draws_.kept[i - 1]);
      const double norm = squared_norm();
      const auto weight = [&](std::size_t row) { return draws_.weights[row * (d + 1) + r]; };
      const double add = weight(0), drop = weight(1);
      for (std::size_t j = 0; j < d; ++j) gain_[j] = outside_[j] * add + inside_[j] * drop;
      for (std::size_t k = 0; k < m_.outputs; ++k) {
        const double* c = m_.c + k * d;
        const double sum = dot(inside_.data(), c), here = value(m_.b[k], sum, norm);
        change_all(c, m_.b[k], sum, norm, here);
        double* out = effects + k * d;
        for (std::size_t j = 0; j < d; ++j) out[j] += gain_[j] * change_[j];
        const double dropped = dot(inside_.data(), change_.data()), added = dot(outside_.data(), change_.data());
        const double away = here - m_.base[k];
        double* total = totals + 3 * k;
        total[0] += weight(2) * added + weight(3) * dropped;
        total[1] += weight(4) * away;
        total[2] += weight(4) * away * away;
      }
    }
  }

 private:
  static constexpr std::size_t kLanes = 8;

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // A set of r words, behind the first one's of a pair, and the sign of each word: -1 inside, where it would be dropped.
  void draw(std::size_t r, bool is_second) {
    const std::size_t d = m_.words, few = std::min(r, d - r);
    const double drawn = few == r ? 1.0 : 0.0;
    std::fill(inside_.begin(), inside_.end(), 1.0 - drawn);
    for (std::size_t i = 0; i < (is_second ? 0 : 2 * few); ++i) {
      const std::size_t place = i + static_cast<std::size_t>(((next() >> 32) * (d - i)) >> 32);
      std::swap(order_[i], order_[place]);
    }
    const std::size_t first = is_second ? few : 0;
    for (std::size_t i = first; i < first + few; ++i) inside_[order_[i]] = drawn;
    for (std::size_t j = 0; j < d; ++j) {
      outside_[j] = 1.0 - inside_[j];
      sign_[j] = outside_[j] - inside_[j];
    }
  }

  // In eight sums, which are added up in one order.
  double dot(const double* u, const double* v) const {
    double sums[kLanes] = {};
    std::size_t j = 0;
    for (; j + kLanes <= m_.words; j += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += u[j + lane] * v[j + lane];
    }
    for (std::size_t lane = 0; j < m_.words; ++j, ++lane) sums[lane] += u[j] * v[j];
    double total = 0.0;
    for (const double sum : sums) total += sum;
    return total;
  }

  // N(S); `step_` becomes what each word changes of it.
  double squared_norm() {
    double norm = dot(inside_.data(), m_.a);
    for (std::size_t j = 0; j < m_.words; ++j) step_[j] = sign_[j] * m_.a[j];
    for (std::size_t g = 0; g < m_.groups; ++g) {
      const double* excess = m_.excess + m_.excess_start[g];
      const std::int64_t* member = m_.member + m_.member_start[g];
      const auto count = static_cast<std::size_t>(m_.member_start[g + 1] - m_.member_start[g]);
      std::size_t kept = 0;
      for (std::size_t i = 0; i < count; ++i) kept |= static_cast<std::size_t>(inside_[at(member[i])] > 0) << i;
      norm += excess[kept];
      for (std::size_t i = 0; i < count; ++i) {
        step_[at(member[i])] += excess[kept ^ (std::size_t{1} << i)] - excess[kept];
      }
    }
    return norm;
  }

  static std::size_t at(std::int64_t word) { return static_cast<std::size_t>(word); }

  // D of every word.
  void change_all(const double* c, double b, double sum, double norm, double here) {
    for (std::size_t j = 0; j < m_.words; ++j) {
      change_[j] = sign_[j] * (value(b, sum + sign_[j] * c[j], norm + step_[j]) - here);
    }
  }

  static double value(double b, double sum, double norm) {
    // Where nothing with a weight is left, the sum is 0 to the last bit.
    const double margin = b + sum / std::sqrt(std::max(norm, 1e-300)), small = exponential(-std::fabs(margin));
    return (margin < 0.0 ? small : 1.0) / (1.0 + small);
  }

  // e^x for x <= 0, and 3e-308 of less than -708: 2^n e^y, |y| <= ln(2) / 2, by its Taylor polynomial.
  static double exponential(double x) {
    constexpr double kLowest = -708.0, kShift = 0x1.8p52;
    constexpr double kHigh = 0x1.62e42fefa38p-1, kLow = 0x1.ef35793c7673p-45;
    const double safe = std::max(x, kLowest);
    const double shifted = safe * 0x1.71547652b82fep0 + kShift, n = shifted - kShift;
    const double y = (safe - n * kHigh) - n * kLow;
    double sum = 1.0 / 6227020800.0;
    sum = sum * y + 1.0 / 479001600.0;
    sum = sum * y + 1.0 / 39916800.0;
    sum = sum * y + 1.0 / 3628800.0;
    sum = sum * y + 1.0 / 362880.0;
    sum = sum * y + 1.0 / 40320.0;
    sum = sum * y + 1.0 / 5040.0;
    sum = sum * y + 1.0 / 720.0;
    sum = sum * y + 1.0 / 120.0;
    sum = sum * y + 1.0 / 24.0;
    sum = sum * y + 1.0 / 6.0;
    sum = sum * y + 0.5;
    sum = sum * y + 1.0;
    sum = sum * y + 1.0;
    std::uint64_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    double power;
    std::memcpy(&power, &bits, sizeof power);
    return sum * power;
  }

  const SubsetModel& m_;
  const SubsetDraws& draws_;
  std::uint64_t state_;
  std::vector<std::size_t> order_;
  std::vector<double> inside_, outside_, sign_, step_, gain_, change_;
};

}  // namespace
}  // namespace limes
