// Weighted sums over nodes of products of complex factors, and of the same with one factor replaced.
//
// For every row, with the factors m_f and their changes c_fg at N nodes,
//     sum_k = Re sum_n w_kn prod_f m_f[n],      change_fgk = Re sum_n w_kn c_fg[n] prod_{e != f} m_e[n]:
// the products before each factor are stored, those after it are carried along. A block of nodes stays in the cache.
// Real and imaginary parts are apart, and each loop does one thing, so that compilers vectorise it without another order
// of additions; a block's terms are added up in halves.
// node_products_avx2.cpp is this file once more, compiled for processors with AVX2.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace limes {

// One factor: means (patterns, 2, N) and changes (patterns, width, 2, N), real parts before imaginary ones, and the
// pattern of each row.
struct NodeFactor {
  const double *means, *changes;
  std::size_t width;
  const std::int64_t* pattern;
};

// Weights are (outputs, 2, N); sums are (rows, outputs), changes (rows, all widths, outputs).
struct NodeTask {
  std::size_t rows, nodes, outputs;
  std::vector<NodeFactor> factors;
  const double* weights;
  double *sums, *changes;
};

using AddNodeProducts = void (*)(const NodeTask&);

AddNodeProducts portable_node_products();
AddNodeProducts avx2_node_products();

namespace {

class NodeProducts {
 public:
  explicit NodeProducts(const NodeTask& task)
      : t_(task), stride_(std::min(kBlock, task.nodes + kLanes)), before_(2 * (task.factors.size() + 1) * stride_),
        after_(2 * stride_), product_(2 * stride_), weighted_(2 * stride_) {}

  void add() {
    std::size_t widths = 0;
    for (const NodeFactor& factor : t_.factors) widths += factor.width;
    // rows share the tables of a block, which are larger than a cache for all nodes
    for (std::size_t start = 0; start < t_.nodes; start += kBlock) {
      const Block block{start, std::min(kBlock, t_.nodes - start)};
      for (std::size_t row = 0; row < t_.rows; ++row) {
        add_block(block, row, t_.sums + row * t_.outputs, t_.changes + row * widths * t_.outputs);
      }
    }
  }

 private:
  static constexpr std::size_t kBlock = 256, kLanes = 8;

  struct Block {
    std::size_t start, count;
  };

  // Complex numbers, real and imaginary parts apart.
  struct Parts {
    const double *real, *imaginary;
  };

  void add_block(Block block, std::size_t row, double* sums, double* changes) {
    const std::size_t factors = t_.factors.size(), count = block.count;
    // the weights of a single output are a factor like the others, those of several come last
    const bool single = t_.outputs == 1;
    const Parts first = table(block, t_.weights, 0);
    for (std::size_t i = 0; i < count; ++i) {
      before_[i] = single ? first.real[i] : 1.0;
      before_[stride_ + i] = single ? first.imaginary[i] : 0.0;
    }
    for (std::size_t f = 0; f < factors; ++f) {
      multiply(count, before(f), mean(block, row, f), &before_[2 * (f + 1) * stride_]);
    }
    for (std::size_t k = 0; k < t_.outputs; ++k) sums[k] += total(count, weighted(block, before(factors), k, single));
    std::fill_n(after_.begin(), stride_, 1.0);
    std::fill_n(after_.begin() + stride_, stride_, 0.0);
    std::size_t place = 0;
    for (const NodeFactor& factor : t_.factors) place += factor.width;
    for (std::size_t f = factors; f-- > 0;) {
      const NodeFactor& factor = t_.factors[f];
      place -= factor.width;
      multiply(count, before(f), parts(after_), product_.data());
      for (std::size_t k = 0; k < t_.outputs; ++k) {
        const Parts others = weighted(block, parts(product_), k, single);
        for (std::size_t g = 0; g < factor.width; ++g) {
          changes[(place + g) * t_.outputs + k] += total(count, others, change(block, row, f, g));
        }
      }
      multiply_by(count, mean(block, row, f), after_.data());
    }
  }

  Parts mean(Block block, std::size_t row, std::size_t f) const {
    return table(block, t_.factors[f].means, static_cast<std::size_t>(t_.factors[f].pattern[row]));
  }

  Parts change(Block block, std::size_t row, std::size_t f, std::size_t place) const {
    const NodeFactor& factor = t_.factors[f];
    return table(block, factor.changes, static_cast<std::size_t>(factor.pattern[row]) * factor.width + place);
  }

  // A block of one row of a table.
  Parts table(Block block, const double* numbers, std::size_t row) const {
    const double* real = numbers + 2 * row * t_.nodes + block.start;
    return {real, real + t_.nodes};
  }

  Parts parts(const std::vector<double>& numbers) const { return {numbers.data(), numbers.data() + stride_}; }
  Parts before(std::size_t f) const { return {&before_[2 * f * stride_], &before_[(2 * f + 1) * stride_]}; }

  // Products with the weights of an output.
  Parts weighted(Block block, Parts product, std::size_t k, bool single) {
    if (single) return product;
    multiply(block.count, product, table(block, t_.weights, k), weighted_.data());
    return parts(weighted_);
  }

  void multiply(std::size_t count, Parts a, Parts b, double* to) const {
    const double *__restrict x = a.real, *__restrict y = a.imaginary;
    const double *__restrict u = b.real, *__restrict v = b.imaginary;
    double *__restrict real = to, *__restrict imaginary = to + stride_;
    for (std::size_t i = 0; i < count; ++i) {
      real[i] = x[i] * u[i] - y[i] * v[i];
      imaginary[i] = x[i] * v[i] + y[i] * u[i];
    }
  }

  void multiply_by(std::size_t count, Parts a, double* to) const {
    const double *__restrict x = a.real, *__restrict y = a.imaginary;
    double *__restrict real = to, *__restrict imaginary = to + stride_;
    for (std::size_t i = 0; i < count; ++i) {
      const double u = real[i], v = imaginary[i];
      real[i] = x[i] * u - y[i] * v;
      imaginary[i] = x[i] * v + y[i] * u;
    }
  }

  // Re sum a[n].
  static double total(std::size_t count, Parts a) {
    double terms[kBlock];
    std::copy_n(a.real, count, terms);
    return halved(count, terms);
  }

  // Re sum a[n] b[n].
  static double total(std::size_t count, Parts a, Parts b) {
    const double *__restrict x = a.real, *__restrict y = a.imaginary;
    const double *__restrict u = b.real, *__restrict v = b.imaginary;
    double terms[kBlock];
    for (std::size_t i = 0; i < count; ++i) terms[i] = x[i] * u[i] - y[i] * v[i];
    return halved(count, terms);
  }

  static double halved(std::size_t count, double* terms) {
    std::size_t padded = 1;
    while (padded < count) padded *= 2;
    std::fill(terms + count, terms + padded, 0.0);
    for (std::size_t half = padded / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) terms[i] += terms[half + i];
    }
    return terms[0];
  }

  const NodeTask& t_;
  // between the real and the imaginary parts of a block
  const std::size_t stride_;
  std::vector<double> before_, after_, product_, weighted_;
};

}  // namespace
}  // namespace limes
