// Sums of exponentials over weighted points, row by row: what E e^{zf} and its contrasts are made of.
//
// For every row, with its points f_k and their weights w_bk of one functional b or two, and nodes z_n,
//     sum_bn = sum_k w_bk e^{z_n f_k - offset_n}.
// The first nodes are z_n = x + i (t + n h), whose offsets are one: each is the last one turned by e^{i h f}, which is
// begun anew every kNodes nodes, so that roundings do not add up. The others are real. Points go through in chunks that
// stay in the cache, in kLanes sums, which are added up in one order.
// exponentials_avx2.cpp is this file once more, compiled for processors with AVX2.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace limes {

// Points (K,), weights (B, K), the first point of each row and K (rows + 1,); nodes (N, 2), offsets (rows, N); sums
// (rows, B, 2, N): by functional, real parts before imaginary ones.
struct ExponentialTask {
  std::size_t rows, functionals, nodes, equidistant, points;
  const double *value, *weight;
  const std::int64_t* start;
  const double *node, *offset;
  double* sums;
};

using AddExponentials = void (*)(const ExponentialTask&);

AddExponentials portable_exponentials();
AddExponentials avx2_exponentials();

namespace {

class Exponentials {
 public:
  explicit Exponentials(const ExponentialTask& task) : t_(task) {}

  void add() {
    for (std::size_t row = 0; row < t_.rows; ++row) {
      const double* offset = t_.offset + row * t_.nodes;
      double* sums = t_.sums + 2 * t_.functionals * row * t_.nodes;
      const auto end = static_cast<std::size_t>(t_.start[row + 1]);
      for (auto first = static_cast<std::size_t>(t_.start[row]); first < end; first += kPoints) {
        load(first, std::min(kPoints, end - first));
        if (t_.equidistant > 0) add_contour(offset[0], sums);
        for (std::size_t n = t_.equidistant; n < t_.nodes; ++n) add_real(n, offset[n], sums);
      }
    }
  }

 private:
  static constexpr std::size_t kPoints = 64, kNodes = 64, kLanes = 8;
  using Chunk = std::array<double, kPoints>;

  // Points beyond the last of a row have no weight.
  void load(std::size_t first, std::size_t count) {
    for (std::size_t k = 0; k < kPoints; ++k) {
      const bool inside = k < count;
      value_[k] = inside ? t_.value[first + k] : t_.value[first];
      for (std::size_t b = 0; b < t_.functionals; ++b) weight_[b][k] = inside ? t_.weight[b * t_.points + first + k] : 0.0;
    }
  }

  // e^{x f - offset} times the weights.
  void scale(double x, double offset) {
    for (std::size_t k = 0; k < kPoints; ++k) {
      const double size = std::exp(x * value_[k] - offset);
      for (std::size_t b = 0; b < t_.functionals; ++b) scaled_[b][k] = weight_[b][k] * size;
    }
  }

  void add_real(std::size_t n, double offset, double* sums) {
    scale(t_.node[2 * n], offset);
    for (std::size_t b = 0; b < t_.functionals; ++b) {
      std::array<double, kLanes> lanes{};
      for (std::size_t k = 0; k < kPoints; k += kLanes) {
        for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += scaled_[b][k + l];
      }
      sums[2 * b * t_.nodes + n] += total(lanes);
    }
  }

  void add_contour(double offset, double* sums) {
    const double t = t_.node[1], step = t_.equidistant > 1 ? t_.node[3] - t : 0.0;
    scale(t_.node[0], offset);
    turn(step, turn_real_, turn_imaginary_);
    for (std::size_t first = 0; first < t_.equidistant; first += kNodes) {
      turn(t + static_cast<double>(first) * step, real_, imaginary_);
      for (std::size_t n = first; n < std::min(first + kNodes, t_.equidistant); ++n) {
        for (std::size_t b = 0; b < t_.functionals; ++b) {
          double* to = sums + 2 * b * t_.nodes + n;
          to[0] += dot(scaled_[b], real_);
          to[t_.nodes] += dot(scaled_[b], imaginary_);
        }
        rotate();
      }
    }
  }

  // e^{i t f}.
  void turn(double t, Chunk& real, Chunk& imaginary) const {
    for (std::size_t k = 0; k < kPoints; ++k) {
      real[k] = std::cos(t * value_[k]);
      imaginary[k] = std::sin(t * value_[k]);
    }
  }

  void rotate() {
    for (std::size_t k = 0; k < kPoints; ++k) {
      const double u = real_[k], v = imaginary_[k];
      real_[k] = u * turn_real_[k] - v * turn_imaginary_[k];
      imaginary_[k] = u * turn_imaginary_[k] + v * turn_real_[k];
    }
  }

  static double dot(const Chunk& a, const Chunk& b) {
    std::array<double, kLanes> lanes{};
    for (std::size_t k = 0; k < kPoints; k += kLanes) {
      for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += a[k + l] * b[k + l];
    }
    return total(lanes);
  }

  static double total(const std::array<double, kLanes>& s) {
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
  }

  const ExponentialTask& t_;
  alignas(64) Chunk value_, real_, imaginary_, turn_real_, turn_imaginary_;
  alignas(64) std::array<Chunk, 2> weight_, scaled_;
};

}  // namespace
}  // namespace limes
