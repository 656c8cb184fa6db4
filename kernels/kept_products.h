// Weighted sums over nodes of products of complex factors that keep a row's numbers with probabilities t.
//
// Factor f is k_f g_f[n] + r_f m_f[n] at node n: g are the row's own numbers, m those of its law, and k and r are t and 1 - t
// over one scale of each t. For every t of a row
//     sum_o = Re sum_n w_on prod_f (k_f g_f[n] + r_f m_f[n]),    change_fo = (k_f + r_f) Re sum_n w_on (g_f[n] - m_f[n]) prod_{e != f} ...
// The t of a row are beside each other in registers, as all of them have the same g and m: one node after the other the
// products before each factor are stored, and those after it are carried along. A few nodes are added up before they are
// added to what there is.
// g is a product of two numbers where the nodes are those of a grid: e^{z1 a} e^{z2 b}.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lanes.h"

namespace limes {

// One factor: means (patterns, 2, N) and the row's numbers along (points, 2, K) and across (points, 2, L) a grid, or along
// alone, real parts before imaginary ones; the pattern of each point; k and r of each row (rows, 2).
struct KeptFactor {
  const double *means, *along, *across;
  const std::int64_t* pattern;
  const double* shares;
};

// Rows of a point stand together, start[point] is the first. Node n is at first[n] along and second[n] across. Weights are
// (outputs, 2, N); sums are (rows, outputs), changes (rows, factors, outputs).
struct KeptTask {
  std::size_t points, nodes, outputs, length_along, length_across;
  std::vector<KeptFactor> factors;
  const std::int64_t *start, *first, *second;
  const double* weights;
  double *sums, *changes;
};

using AddKeptProducts = void (*)(const KeptTask&);

AddKeptProducts portable_kept_products();
AddKeptProducts avx2_kept_products();
AddKeptProducts avx512_kept_products();

namespace {

class KeptProducts {
 public:
  explicit KeptProducts(const KeptTask& task)
      : t_(task), factors_(task.factors.size()), width_(4 + 2 * task.outputs),
        numbers_(std::min(kTogether, task.nodes) * factors_ * width_), before_(factors_ * 4 * kLanes) {}

  void add() {
    for (std::size_t point = 0; point < t_.points; ++point) add_point(point);
  }

 private:
  // Lanes of a step, and nodes whose numbers are gathered, and terms added up, before they are added to the others
  static constexpr std::size_t kLanes = 8, kHalf = 4, kTogether = 64;
  using Numbers = std::vector<double, InLines<double>>;

  template <std::size_t T>
  struct Pair {
    Nodes<T> real, imaginary;
    static LIMES_INLINE Pair load(const double* at) { return {Nodes<T>::load(at), Nodes<T>::load(at + T)}; }
    LIMES_INLINE void store(double* at) const { real.store(at), imaginary.store(at + T); }
    LIMES_INLINE Pair operator*(const Pair& other) const {
      return {real * other.real - imaginary * other.imaginary, real * other.imaginary + imaginary * other.real};
    }
    // Re c z of one complex number c.
    LIMES_INLINE Nodes<T> with(const double* c) const {
      return real * Nodes<T>::all(c[0]) - imaginary * Nodes<T>::all(c[1]);
    }
  };

  void add_point(std::size_t point) {
    const std::size_t begin = static_cast<std::size_t>(t_.start[point]);
    const std::size_t rows = static_cast<std::size_t>(t_.start[point + 1]) - begin;
    if (rows == 0) return;
    lanes_ = (rows + kHalf - 1) / kHalf * kHalf;
    shares_.assign(factors_ * 2 * lanes_, 0.0);
    for (std::size_t f = 0; f < factors_; ++f) {
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t which = 0; which < 2; ++which) {
          shares_[(2 * f + which) * lanes_ + i] = t_.factors[f].shares[2 * (begin + i) + which];
        }
      }
    }
    // changes of each factor by each output, and the sums
    const std::size_t count = (factors_ + 1) * t_.outputs * lanes_;
    total_.assign(count, 0.0), added_.assign(count, 0.0);
    for (std::size_t start = 0; start < t_.nodes; start += kTogether) {
      const std::size_t nodes = std::min(kTogether, t_.nodes - start);
      gather(point, start, nodes);
      std::size_t lane = 0;
      for (; lane + kLanes <= lanes_; lane += kLanes) add_nodes<kLanes>(lane, start, nodes);
      if (lane < lanes_) add_nodes<kHalf>(lane, start, nodes);
      for (std::size_t i = 0; i < count; ++i) total_[i] += added_[i];
      std::fill(added_.begin(), added_.end(), 0.0);
    }
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t o = 0; o < t_.outputs; ++o) {
        t_.sums[(begin + i) * t_.outputs + o] += total_[(factors_ * t_.outputs + o) * lanes_ + i];
        for (std::size_t f = 0; f < factors_; ++f) {
          const double scale = shares_[2 * f * lanes_ + i] + shares_[(2 * f + 1) * lanes_ + i];
          t_.changes[((begin + i) * factors_ + f) * t_.outputs + o] += scale * total_[(f * t_.outputs + o) * lanes_ + i];
        }
      }
    }
  }

  // g, m and w (g - m) of the factors at some nodes, node by node.
  void gather(std::size_t point, std::size_t start, std::size_t nodes) {
    const std::size_t step = factors_ * width_;
    for (std::size_t f = 0; f < factors_; ++f) {
      const KeptFactor& factor = t_.factors[f];
      const double* m = factor.means + 2 * static_cast<std::size_t>(factor.pattern[point]) * t_.nodes + start;
      const double* along = factor.along + 2 * point * t_.length_along;
      const double* across = factor.across == nullptr ? nullptr : factor.across + 2 * point * t_.length_across;
      // real and imaginary parts apart: compilers round the two parts of a product together otherwise
      double* to = &numbers_[f * width_];
      for (std::size_t part = 0; part < 2; ++part) {
        const double sign = part == 0 ? -1.0 : 1.0;
        for (std::size_t i = 0; i < nodes; ++i) {
          const std::size_t at = static_cast<std::size_t>(t_.first[start + i]);
          double& g = to[i * step + part];
          g = along[part * t_.length_along + at];
          if (across != nullptr) {
            const double* other = across + t_.second[start + i];
            g = g * other[0] + sign * along[(1 - part) * t_.length_along + at] * other[t_.length_across];
          }
          to[i * step + 2 + part] = m[part * t_.nodes + i];
        }
      }
      for (std::size_t o = 0; o < t_.outputs; ++o) {
        const double* w = t_.weights + 2 * o * t_.nodes + start;
        for (std::size_t part = 0; part < 2; ++part) {
          const double sign = part == 0 ? -1.0 : 1.0;
          for (std::size_t i = 0; i < nodes; ++i) {
            const double* its = to + i * step;
            const double same = its[part] - its[2 + part], other = its[1 - part] - its[3 - part];
            to[i * step + 4 + 2 * o + part] = same * w[i] + sign * other * w[t_.nodes + i];
          }
        }
      }
    }
  }

  template <std::size_t T>
  void add_nodes(std::size_t lane, std::size_t start, std::size_t nodes) {
    const double* numbers = numbers_.data();
    for (std::size_t i = 0; i < nodes; ++i, numbers += factors_ * width_) {
      Pair<T> product{Nodes<T>::all(1.0), Nodes<T>::all(0.0)};
      for (std::size_t f = 0; f < factors_; ++f) {
        const double* at = numbers + f * width_;
        const Nodes<T> keep = Nodes<T>::load(&shares_[2 * f * lanes_ + lane]);
        const Nodes<T> draw = Nodes<T>::load(&shares_[(2 * f + 1) * lanes_ + lane]);
        const Pair<T> mixed{keep * Nodes<T>::all(at[0]) + draw * Nodes<T>::all(at[2]),
                            keep * Nodes<T>::all(at[1]) + draw * Nodes<T>::all(at[3])};
        product.store(&before_[4 * f * T]);
        mixed.store(&before_[(4 * f + 2) * T]);
        product = product * mixed;
      }
      for (std::size_t o = 0; o < t_.outputs; ++o) {
        const double* w = t_.weights + 2 * o * t_.nodes + start + i;
        const double weight[2] = {w[0], w[t_.nodes]};
        increase(&added_[(factors_ * t_.outputs + o) * lanes_ + lane], product.with(weight));
      }
      Pair<T> after{Nodes<T>::all(1.0), Nodes<T>::all(0.0)};
      for (std::size_t f = factors_; f-- > 0;) {
        const double* at = numbers + f * width_ + 4;
        const Pair<T> others = Pair<T>::load(&before_[4 * f * T]) * after;
        for (std::size_t o = 0; o < t_.outputs; ++o) {
          increase(&added_[(f * t_.outputs + o) * lanes_ + lane], others.with(at + 2 * o));
        }
        after = after * Pair<T>::load(&before_[(4 * f + 2) * T]);
      }
    }
  }

  template <std::size_t T>
  static LIMES_INLINE void increase(double* at, Nodes<T> by) {
    (Nodes<T>::load(at) + by).store(at);
  }

  const KeptTask& t_;
  const std::size_t factors_, width_;
  std::size_t lanes_ = 0;
  Numbers numbers_, before_, shares_, total_, added_;
};

}  // namespace
}  // namespace limes
