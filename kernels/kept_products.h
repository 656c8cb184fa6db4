// Weighted sums over nodes of products of complex factors that keep a row's numbers with probabilities t.
//
// Factor f is k_f g_f[n] + r_f m_f[n] at node n: g are the row's own numbers, m those of its law, and k and r are t and 1 - t
// over one scale of each t. For every t of a row
//     sum_o = Re sum_n w_on prod_f (k_f g_f[n] + r_f m_f[n]),    change_fo = (k_f + r_f) Re sum_n w_on (g_f[n] - m_f[n]) prod_{e != f} ...
// The t of a row are beside each other in registers, as all of them have the same g and m: one node after the other the
// products before each factor are stored, and those after it are carried along. Of many factors a block after the other is
// taken, so that its numbers stay in a cache; what is behind each block is multiplied first. A few nodes are added up before
// they are added to what there is.
// g is a product of two numbers where the nodes are those of a grid: e^{z1 a} e^{z2 b}.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lanes.h"

namespace limes {

// One factor: means (patterns of all factors, 2, N) and the row's numbers along (points, 2, K) and across (points, 2, L) a grid, or along
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
        together_(std::min(kTogether, task.nodes)), blocks_(std::max<std::size_t>(1, (factors_ + kFactors - 1) / kFactors)),
        numbers_(together_ * std::min(kFactors, factors_) * width_), before_(std::min(kFactors, factors_) * 4 * kLanes) {}

  void add() {
    for (std::size_t point = 0; point < t_.points; ++point) add_point(point);
  }

 private:
  // Lanes of a step, two registers at least, whose products do not wait for each other, and of the smallest; factors of a
  // block, and nodes whose numbers are gathered, and terms added up, before they are added to the others
  static constexpr std::size_t kLanes = kRegister > 4 ? 16 : 8, kFewest = 4, kFactors = 32, kTogether = 64;
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

  // Some factors.
  struct Block {
    std::size_t begin, count;
  };

  Block block(std::size_t b) const { return {b * kFactors, std::min(kFactors, factors_ - b * kFactors)}; }

  void add_point(std::size_t point) {
    const std::size_t begin = static_cast<std::size_t>(t_.start[point]);
    const std::size_t rows = static_cast<std::size_t>(t_.start[point + 1]) - begin;
    if (rows == 0) return;
    lanes_ = (rows + kFewest - 1) / kFewest * kFewest;
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
    product_.resize(together_ * 2 * lanes_), after_.resize(blocks_ * product_.size());
    for (std::size_t start = 0; start < t_.nodes; start += kTogether) {
      const std::size_t nodes = std::min(kTogether, t_.nodes - start);
      fill_with_ones(product_.data()), fill_with_ones(after(blocks_ - 1));
      for (std::size_t b = blocks_; b-- > 1;) {
        gather(point, start, nodes, block(b), false);
        multiply<kLanes>(b, 0, nodes);
      }
      for (std::size_t b = 0; b < blocks_; ++b) {
        gather(point, start, nodes, block(b), true);
        add_nodes<kLanes>(b, 0, nodes);
      }
      add_sums(start, nodes);
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

  // The products of all factors behind block b, of each node, real parts of all lanes before imaginary ones.
  double* after(std::size_t b) { return &after_[b * product_.size()]; }

  void fill_with_ones(double* products) const {
    for (std::size_t i = 0; i < together_; ++i, products += 2 * lanes_) {
      std::fill_n(products, lanes_, 1.0);
      std::fill_n(products + lanes_, lanes_, 0.0);
    }
  }

  // g and m of a block's factors at some nodes, node by node, and w (g - m).
  void gather(std::size_t point, std::size_t start, std::size_t nodes, Block block, bool with_weights) {
    const std::size_t step = block.count * width_;
    for (std::size_t f = 0; f < block.count; ++f) {
      const KeptFactor& factor = t_.factors[block.begin + f];
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
      for (std::size_t o = 0; with_weights && o < t_.outputs; ++o) {
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

  // k g + r m of a factor, whose numbers are at a place.
  template <std::size_t T>
  LIMES_INLINE Pair<T> mixed(std::size_t f, std::size_t lane, const double* at) const {
    const Nodes<T> keep = Nodes<T>::load(&shares_[2 * f * lanes_ + lane]);
    const Nodes<T> draw = Nodes<T>::load(&shares_[(2 * f + 1) * lanes_ + lane]);
    return {keep * Nodes<T>::all(at[0]) + draw * Nodes<T>::all(at[2]),
            keep * Nodes<T>::all(at[1]) + draw * Nodes<T>::all(at[3])};
  }

  template <std::size_t T>
  LIMES_INLINE Pair<T> lanes_of(const double* products) const {
    return {Nodes<T>::load(products), Nodes<T>::load(products + lanes_)};
  }

  template <std::size_t T>
  LIMES_INLINE void store(Pair<T> pair, double* products) const {
    pair.real.store(products), pair.imaginary.store(products + lanes_);
  }

  // Multiply what is behind block b by its factors, in lanes from one on: that is behind the block before.
  template <std::size_t T>
  void multiply(std::size_t b, std::size_t lane, std::size_t nodes) {
    for (; lane + T <= lanes_; lane += T) multiply_lanes<T>(b, lane, nodes);
    if constexpr (T > kFewest) multiply<T / 2>(b, lane, nodes);
  }

  template <std::size_t T>
  void multiply_lanes(std::size_t b, std::size_t lane, std::size_t nodes) {
    const Block its = block(b);
    const double* numbers = numbers_.data();
    for (std::size_t i = 0; i < nodes; ++i, numbers += its.count * width_) {
      Pair<T> behind = lanes_of<T>(after(b) + 2 * i * lanes_ + lane);
      for (std::size_t f = its.count; f-- > 0;) {
        behind = behind * mixed<T>(its.begin + f, lane, numbers + f * width_);
      }
      store(behind, after(b - 1) + 2 * i * lanes_ + lane);
    }
  }

  // Add the terms of a block's factors, in lanes from one on.
  template <std::size_t T>
  void add_nodes(std::size_t b, std::size_t lane, std::size_t nodes) {
    for (; lane + T <= lanes_; lane += T) add_lanes<T>(b, lane, nodes);
    if constexpr (T > kFewest) add_nodes<T / 2>(b, lane, nodes);
  }

  template <std::size_t T>
  void add_lanes(std::size_t b, std::size_t lane, std::size_t nodes) {
    const Block its = block(b);
    const double* numbers = numbers_.data();
    for (std::size_t i = 0; i < nodes; ++i, numbers += its.count * width_) {
      Pair<T> product = lanes_of<T>(&product_[2 * i * lanes_ + lane]);
      for (std::size_t f = 0; f < its.count; ++f) {
        const Pair<T> factor = mixed<T>(its.begin + f, lane, numbers + f * width_);
        product.store(&before_[4 * f * T]);
        factor.store(&before_[(4 * f + 2) * T]);
        product = product * factor;
      }
      store(product, &product_[2 * i * lanes_ + lane]);
      Pair<T> behind = lanes_of<T>(after(b) + 2 * i * lanes_ + lane);
      for (std::size_t f = its.count; f-- > 0;) {
        const double* at = numbers + f * width_ + 4;
        const Pair<T> others = Pair<T>::load(&before_[4 * f * T]) * behind;
        for (std::size_t o = 0; o < t_.outputs; ++o) {
          increase(&added_[((its.begin + f) * t_.outputs + o) * lanes_ + lane], others.with(at + 2 * o));
        }
        behind = behind * Pair<T>::load(&before_[(4 * f + 2) * T]);
      }
    }
  }

  // Add the products of all factors, with their weights.
  void add_sums(std::size_t start, std::size_t nodes) {
    for (std::size_t o = 0; o < t_.outputs; ++o) {
      const double* w = t_.weights + 2 * o * t_.nodes + start;
      double* to = &added_[(factors_ * t_.outputs + o) * lanes_];
      for (std::size_t i = 0; i < nodes; ++i) {
        const double* product = &product_[2 * i * lanes_];
        for (std::size_t l = 0; l < lanes_; ++l) to[l] += product[l] * w[i] - product[lanes_ + l] * w[t_.nodes + i];
      }
    }
  }

  template <std::size_t T>
  static LIMES_INLINE void increase(double* at, Nodes<T> by) {
    (Nodes<T>::load(at) + by).store(at);
  }

  const KeptTask& t_;
  const std::size_t factors_, width_, together_, blocks_;
  std::size_t lanes_ = 0;
  Numbers numbers_, before_, shares_, total_, added_, product_, after_;
};

}  // namespace
}  // namespace limes
