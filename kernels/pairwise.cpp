// The pairwise bound of the exact search: what n more literals can gain at most.
//
// At a node some literals S have been swept in (A is the Schur complement of the Gram matrix, r = b + eta 1 what is left
// to gain, eta being the multiplier of the hyperplane) and n more may join. A set T of them gains
//
//     max_v  2 r.v - v'Av,
//
// with v scaled so that A has a unit diagonal and correlations e. Each v_i^2 and 2 r_i v_i is shared out evenly among
// the n - 1 partners of i, and every pair maximised on its own:
//
//     gain(T) <= 1/(n-1) sum_pairs g_ij,   g_ij = (r_i^2 + r_j^2 - 2 c r_i r_j)/(1 - c^2),   c = (n-1) e_ij,
//
// so that, with q_i = (sum of the n - 1 largest g_i.)/(2(n-1)), gain(T) <= sum_T q_i. Correlations beyond
// tau = 0.9/(n-1) are clipped to +-tau, and what was cut off is charged to the diagonal, as
// -2 e v_i v_j <= -2 sgn(e) tau v_i v_j + (|e| - tau)(v_i^2 + v_j^2). The bound is exact for n <= 2, and good where
// literals are nearly uncorrelated, as they are in a sample of many rows.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "arrays.h"
#include "kernels.h"

namespace limes {
namespace {

// Correlations times (n - 1) are kept below this: at 1 a pair's gain is unbounded.
constexpr double kClip = 0.9;
// A diagonal or determinant with less than this share left counts as nothing: its gain is not bounded.
constexpr double kNothing = 1e-3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Numbers = std::vector<double>;

// The largest numbers >= 0 of a sequence, ascending.
class Largest {
 public:
  explicit Largest(std::size_t count) : top_(count) {}
  void clear() { std::fill(top_.begin(), top_.end(), 0.0); }
  void add(double value) {
    if (top_.empty() || !(value > top_[0])) return;
    std::size_t place = 0;
    for (; place + 1 < top_.size() && top_[place + 1] < value; ++place) top_[place] = top_[place + 1];
    top_[place] = value;
  }
  double sum() const { return std::accumulate(top_.begin(), top_.end(), 0.0); }
  double sum_of(const Numbers& values) {
    clear();
    for (const double value : values) add(value);
    return sum();
  }

 private:
  Numbers top_;
};

// Scale (p,) of r, and of every pair c and 1/(1 - c^2), both (p, p); the latter is infinite where a gain is unbounded.
struct Couplings {
  std::size_t p;
  Numbers scale, cross, share;

  Couplings(Matrix gram, std::size_t slots) : p(gram.shape(0)), scale(p), cross(p * p), share(p * p) {
    const double partners = static_cast<double>(slots - 1), clip = kClip / partners;
    Numbers room(p), row(p);
    Largest largest(slots - 1);
    for (std::size_t i = 0; i < p; ++i) scale[i] = 1.0 / std::sqrt(gram(i, i));
    for (std::size_t i = 0; i < p; ++i) {
      for (std::size_t j = 0; j < p; ++j) {
        const double e = gram(i, j) * scale[i] * scale[j];
        cross[i * p + j] = std::min(std::max(e, -clip), clip);
        row[j] = std::abs(e) - clip;
      }
      row[i] = 0.0;
      room[i] = 1.0 - largest.sum_of(row);
    }
    for (std::size_t i = 0; i < p; ++i) {
      for (std::size_t j = 0; j < p; ++j) {
        double& c = cross[i * p + j];
        if (room[i] <= kNothing || room[j] <= kNothing) {
          share[i * p + j] = kInfinity;
          continue;
        }
        c *= partners / std::sqrt(room[i] * room[j]);
        const double rest = 1.0 - c * c;
        share[i * p + j] = rest > kNothing ? 1.0 / rest : kInfinity;
      }
      cross[i * p + i] = share[i * p + i] = 0.0;
    }
    for (std::size_t i = 0; i < p; ++i) scale[i] /= std::sqrt(std::max(room[i], kNothing));
  }

  // q_i of scaled r, (p,); infinite where the gain is not bounded.
  void shares(const Numbers& r, Largest& top, std::size_t partners, Numbers& q) const {
    for (std::size_t i = 0; i < p; ++i) {
      const double at = r[i], square = at * at;
      const double *c = &cross[i * p], *factor = &share[i * p];
      top.clear();
      for (std::size_t j = 0; j < p; ++j) {
        top.add(factor[j] < kInfinity ? (square + r[j] * (r[j] - 2.0 * c[j] * at)) * factor[j] : kInfinity);
      }
      q[i] = top.sum() / (2.0 * static_cast<double>(partners));
    }
  }
};

// The objective's bound without further literals: c + 2 eta y - (gain of those swept in).
double floor_of(double eta, double square, double target, const Vector& swept) {
  return square + 2.0 * eta * target - (swept(0) + 2.0 * eta * swept(1) + eta * eta * swept(2));
}

void check(const Matrix& gram, const Vector& moments, const Vector& ones) {
  require(gram.shape(0) == gram.shape(1) && moments.size() == gram.shape(0) && ones.size() == gram.shape(0),
          "gram must be (p, p), moments and ones (p,)");
}

// The best bound over eta that a few steps reach: eta, the floor; every literal's share is written to q (p,). The
// bound is floor - (sum of the `slots` largest q), concave in eta; steps end where it reaches `enough`. `moments` and
// `ones` are b and 1 as the sweep leaves them.
std::tuple<double, double> tighten(Matrix gram, Vector moments, Vector ones, Vector swept, std::size_t slots, double square,
                  double target, double eta, double enough, int tries, VectorOut q) {
  check(gram, moments, ones);
  require(slots >= 2 && swept.size() == 3 && q.size() == moments.size(), "a pair needs two slots");
  double best = -kInfinity, best_eta = eta;
  const Couplings couplings(gram, slots);
  const std::size_t p = couplings.p;
  Numbers r(p), trial_q(p), best_q(p);
  Largest of_partners(slots - 1), of_literals(slots);
  double size = 0.0;
  for (std::size_t i = 0; i < p; ++i) size = std::max(size, std::abs(moments(i) + eta * ones(i)));
  double step = 0.2 * size, trial = eta;
  bool upward = true;
  for (int attempt = 0; attempt <= tries; ++attempt) {
    for (std::size_t i = 0; i < p; ++i) r[i] = (moments(i) + trial * ones(i)) * couplings.scale[i];
    couplings.shares(r, of_partners, slots - 1, trial_q);
    const double bound = floor_of(trial, square, target, swept) - of_literals.sum_of(trial_q);
    if (bound > best || attempt == 0) {
      if (attempt > 0) step *= 1.5;
      best = bound;
      best_eta = trial;
      std::swap(best_q, trial_q);
    } else if (upward) {
      upward = false;
    } else {
      upward = true;
      step *= 0.35;
    }
    if (best >= enough || !(step > 1e-4 * size)) break;
    trial = best_eta + (upward ? step : -step);
  }
  std::copy(best_q.begin(), best_q.end(), q.data());
  return {best_eta, floor_of(best_eta, square, target, swept)};
}

// The two literals that end best, all pairs tried: objective and places, -1 if none is below `below`. With S of gains
// (alpha, beta, delta) = (b'H^-1 b, b'H^-1 1, 1'H^-1 1) the objective is c - alpha + (beta - y)^2/delta.
std::tuple<double, std::int64_t, std::int64_t> best_pair(Matrix gram, Vector moments, Vector ones, Vector swept, double square, double target,
                    double below) {
  check(gram, moments, ones);
  require(swept.size() == 3, "swept must be (3,)");
  std::int64_t first = -1, second = -1;
  const std::size_t p = gram.shape(0);
  for (std::size_t i = 0; i < p; ++i) {
    for (std::size_t j = i + 1; j < p; ++j) {
      const double a = gram(i, i), m = moments(i), s = ones(i);
      double b = gram(j, j), c = gram(i, j), n = moments(j), t = ones(j);
      double det = a * b - c * c;
      if (det <= 1e-9 * a * b) {  // the second adds nothing to the first
        b = 1.0;
        c = n = t = 0.0;
        det = a;
      }
      const double alpha = swept(0) + (b * m * m - 2.0 * c * m * n + a * n * n) / det;
      if (square - alpha >= below) continue;
      const double beta = swept(1) + (b * m * s - c * (m * t + n * s) + a * n * t) / det;
      const double delta = swept(2) + (b * s * s - 2.0 * c * s * t + a * t * t) / det;
      const double objective = square - alpha + (beta - target) * (beta - target) / delta;
      if (objective < below) {
        below = objective;
        first = static_cast<std::int64_t>(i);
        second = static_cast<std::int64_t>(j);
      }
    }
  }
  return {below, first, second};
}

// Sweep literal `place` in; the literals before it are left out for good. Writes what is left of the Gram matrix
// (q, q), of the moments and of the ones (q,), and the gains (3,), with q = p - place - 1.
void sweep_in(Matrix gram, Vector moments, Vector ones, Vector swept, std::size_t place, MatrixOut rest_gram,
              VectorOut rest_moments, VectorOut rest_ones, VectorOut gains) {
  check(gram, moments, ones);
  require(place < gram.shape(0) && swept.size() == 3 && gains.size() == 3, "there is no literal to sweep in");
  const std::size_t after = gram.shape(0) - place - 1;
  require(rest_gram.shape(0) == after && rest_gram.shape(1) == after && rest_moments.size() == after &&
              rest_ones.size() == after,
          "what is left must be (q,)");
  const double pivot = gram(place, place);
  const double* pivots = &gram(place, place) + 1;
  for (std::size_t i = 0; i < after; ++i) {
    const double *row = &gram(place + 1 + i, place), factor = row[0] / pivot;
    double* left = rest_gram.data() + i * after;
    for (std::size_t j = 0; j < after; ++j) left[j] = row[1 + j] - factor * pivots[j];
    rest_moments(i) = moments(place + 1 + i) - factor * moments(place);
    rest_ones(i) = ones(place + 1 + i) - factor * ones(place);
  }
  gains(0) = swept(0) + moments(place) * moments(place) / pivot;
  gains(1) = swept(1) + moments(place) * ones(place) / pivot;
  gains(2) = swept(2) + ones(place) * ones(place) / pivot;
}

}  // namespace

void add_pairwise(nb::module_& module) {
  define(module, "tighten", &tighten);
  define(module, "best_pair", &best_pair);
  define(module, "sweep_in", &sweep_in);
}

}  // namespace limes
