// Weighted sums over nodes of products of complex factors, and of the same with one factor replaced.
//
// For every row, with the factors m_f and their changes c_fg at N nodes,
//     sum_k = Re sum_n w_kn prod_f m_f[n],      change_fgk = Re sum_n w_kn c_fg[n] prod_{e != f} m_e[n]:
// the products before each factor are stored, those after it are carried along. A block of nodes stays in the cache, real
// and imaginary parts apart; eight sums side by side are what compilers may vectorise without another order of additions.
// node_products_avx2.cpp is this file once more, compiled for processors with AVX2.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace limes {

// One factor: means (patterns, N) and changes (patterns, width, N) of interleaved parts, and each row's pattern.
struct NodeFactor {
  const double *means, *changes;
  std::size_t width;
  const std::int64_t* pattern;
};

// Weights (outputs, N) are interleaved, w and -Im w; sums are (rows, outputs), changes (rows, all widths, outputs).
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
      : t_(task), means_(task.factors.size() * kBlock), before_((task.factors.size() + 1) * kBlock),
        weights_(task.outputs * kBlock), after_(kBlock), product_(kBlock) {}

  void add() {
    std::size_t widths = 0;
    for (const NodeFactor& factor : t_.factors) widths += factor.width;
    // rows share the tables of a block, which are larger than a cache for all nodes
    for (std::size_t start = 0; start < t_.nodes; start += kBlock) {
      for (std::size_t row = 0; row < t_.rows; ++row) {
        add_block(row, start, std::min(kBlock, t_.nodes - start), t_.sums + row * t_.outputs,
                  t_.changes + row * widths * t_.outputs);
      }
    }
  }

 private:
  static constexpr std::size_t kBlock = 128, kLanes = 8;

  // Complex numbers, real and imaginary parts apart.
  struct Parts {
    explicit Parts(std::size_t size) : real(size), imaginary(size) {}
    std::vector<double> real, imaginary;
  };

  void add_block(std::size_t row, std::size_t start, std::size_t count, double* sums, double* changes) {
    const std::size_t factors = t_.factors.size();
    for (std::size_t k = 0; k < t_.outputs; ++k) {
      load(t_.weights + 2 * (k * t_.nodes + start), count, weights_, k * kBlock);
    }
    std::fill_n(before_.real.begin(), kBlock, 1.0);
    std::fill_n(before_.imaginary.begin(), kBlock, 0.0);
    for (std::size_t f = 0; f < factors; ++f) {
      const std::size_t pattern = static_cast<std::size_t>(t_.factors[f].pattern[row]);
      load(t_.factors[f].means + 2 * (pattern * t_.nodes + start), count, means_, f * kBlock);
      multiply(before_, f * kBlock, means_, f * kBlock, before_, (f + 1) * kBlock);
    }
    weigh(before_, factors * kBlock, sums);
    std::fill_n(after_.real.begin(), kBlock, 1.0);
    std::fill_n(after_.imaginary.begin(), kBlock, 0.0);
    std::size_t place = 0;
    for (const NodeFactor& factor : t_.factors) place += factor.width;
    for (std::size_t f = factors; f-- > 0;) {
      const NodeFactor& factor = t_.factors[f];
      const std::size_t pattern = static_cast<std::size_t>(factor.pattern[row]);
      place -= factor.width;
      multiply(before_, f * kBlock, after_, 0, before_, f * kBlock);
      for (std::size_t g = 0; g < factor.width; ++g) {
        load(factor.changes + 2 * ((pattern * factor.width + g) * t_.nodes + start), count, product_, 0);
        multiply(before_, f * kBlock, product_, 0, product_, 0);
        weigh(product_, 0, changes + (place + g) * t_.outputs);
      }
      multiply(after_, 0, means_, f * kBlock, after_, 0);
    }
  }

  // Interleaved numbers into parts, and zeros behind the last.
  static void load(const double* __restrict from, std::size_t count, Parts& to, std::size_t at) {
    double *__restrict x = &to.real[at], *__restrict y = &to.imaginary[at];
    for (std::size_t i = 0; i < count; ++i) x[i] = from[2 * i], y[i] = from[2 * i + 1];
    for (std::size_t i = count; i < kBlock; ++i) x[i] = y[i] = 0.0;
  }

  static void multiply(const Parts& a, std::size_t at_a, const Parts& b, std::size_t at_b, Parts& to, std::size_t at) {
    const double *x = &a.real[at_a], *y = &a.imaginary[at_a], *u = &b.real[at_b], *v = &b.imaginary[at_b];
    double real[kLanes], imaginary[kLanes];
    for (std::size_t i = 0; i < kBlock; i += kLanes) {
      for (std::size_t l = 0; l < kLanes; ++l) {
        real[l] = x[i + l] * u[i + l] - y[i + l] * v[i + l];
        imaginary[l] = x[i + l] * v[i + l] + y[i + l] * u[i + l];
      }
      std::copy_n(real, kLanes, &to.real[at + i]);
      std::copy_n(imaginary, kLanes, &to.imaginary[at + i]);
    }
  }

  // Add Re sum_n w_kn p[n] of a block to each output.
  void weigh(const Parts& p, std::size_t at, double* sums) const {
    const double *x = &p.real[at], *y = &p.imaginary[at];
    for (std::size_t k = 0; k < t_.outputs; ++k) {
      const double *u = &weights_.real[k * kBlock], *v = &weights_.imaginary[k * kBlock];
      double sum[kLanes] = {};
      for (std::size_t i = 0; i < kBlock; i += kLanes) {
        for (std::size_t l = 0; l < kLanes; ++l) sum[l] += x[i + l] * u[i + l] + y[i + l] * v[i + l];
      }
      sums[k] += ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
    }
  }

  const NodeTask& t_;
  Parts means_, before_, weights_, after_, product_;
};

}  // namespace
}  // namespace limes
