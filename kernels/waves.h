// Means over subsets of words of products of complex factors: exponentials of sums of words.
//
// With r of k words kept, A[r] = E prod (on_j if word j is kept, else off_j). Word k is among the r kept with probability
// r/k, so that
//     A_k[r] = (1 - r/k) off_k A_{k-1}[r] + (r/k) on_k A_{k-1}[r-1],
// with on complex and off real. The way back, with adjoint weights on r, gives E[(1 - z_j) prod | r] for all words at
// once. From `width` kept words on the products are 0.
//
// The loops over r are plain, of real and imaginary parts apart: compilers make four or eight of them at once where
// they may. waves_avx2.cpp is this file once more, compiled for processors with AVX2.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace limes {

// Of each of `nodes` products: factors (nodes, words), the first strata without a product, and weights.
struct Waves {
  std::size_t nodes, words;
  const double *on_real, *on_imaginary, *off;
  const std::int64_t* width;
  const double *real, *imaginary;
  const double* within;  // (words + 1,)
};

struct WaveSums {
  double *profile;  // (words + 1,)
  double *loss;     // (words,)
};

using AddWaves = void (*)(const Waves&, const WaveSums&);

AddWaves portable_waves();
AddWaves avx2_waves();

namespace {

class Subsets {
 public:
  explicit Subsets(const Waves& waves)
      : w_(waves), stride_(waves.words + 2), real_(stride_ * (waves.words + 1)), imaginary_(real_.size()),
        back_real_(stride_), back_imaginary_(stride_), index_(stride_) {
    for (std::size_t r = 0; r < stride_; ++r) index_[r] = static_cast<double>(r);
  }

  void add(const WaveSums& sums) {
    for (std::size_t n = 0; n < w_.nodes; ++n) {
      const std::size_t width = static_cast<std::size_t>(w_.width[n]);
      for (std::size_t k = 1; k <= w_.words; ++k) advance(n, k, width);
      if (w_.words == 0) real_[0] = 1.0, imaginary_[0] = 0.0;
      const double x = w_.real[n], y = w_.imaginary[n];
      const double *whole_real = &real_[w_.words * stride_], *whole_imaginary = &imaginary_[w_.words * stride_];
      for (std::size_t r = 0; r < width; ++r) {
        sums.profile[r] += x * whole_real[r] - y * whole_imaginary[r];
        back_real_[r] = x * w_.within[r];
        back_imaginary_[r] = y * w_.within[r];
      }
      back_real_[width] = back_imaginary_[width] = 0.0;
      for (std::size_t k = w_.words; k > 0; --k) sums.loss[k - 1] += retreat(n, k, width);
    }
  }

 private:
  // The state after k words from that after k - 1, for r < width.
  void advance(std::size_t n, std::size_t k, std::size_t width) {
    const std::size_t place = n * w_.words + k - 1, last = std::min(k, width - 1);
    const double share = 1.0 / static_cast<double>(k), off = w_.off[place];
    const double x = w_.on_real[place], y = w_.on_imaginary[place], *__restrict index = index_.data();
    double *__restrict p = &real_[(k - 1) * stride_], *__restrict q = &imaginary_[(k - 1) * stride_];
    double *__restrict next_p = &real_[k * stride_], *__restrict next_q = &imaginary_[k * stride_];
    if (k == 1) {
      std::fill_n(p, stride_, 0.0), std::fill_n(q, stride_, 0.0);
      p[0] = 1.0;
    }
    next_p[0] = off * p[0];
    next_q[0] = off * q[0];
    for (std::size_t r = 1; r <= last; ++r) {
      const double take = index[r] * share, stay = (1.0 - take) * off;
      next_p[r] = stay * p[r] + take * (x * p[r - 1] - y * q[r - 1]);
      next_q[r] = stay * q[r] + take * (x * q[r - 1] + y * p[r - 1]);
    }
    // beyond the last there is nothing, which the next word reads
    next_p[last + 1] = next_q[last + 1] = 0.0;
  }

  // What the result owes to texts without word k; the adjoint after it becomes the one before it.
  double retreat(std::size_t n, std::size_t k, std::size_t width) {
    const std::size_t place = n * w_.words + k - 1, reach = std::min(k, width);
    const double share = 1.0 / static_cast<double>(k), off = w_.off[place];
    const double x = w_.on_real[place], y = w_.on_imaginary[place], *__restrict index = index_.data();
    const double *__restrict p = &real_[(k - 1) * stride_], *__restrict q = &imaginary_[(k - 1) * stride_];
    double *__restrict u = back_real_.data(), *__restrict v = back_imaginary_.data();
    // four sums beside each other, as registers hold them
    double part[4] = {0.0, 0.0, 0.0, 0.0};
    const auto term = [&](std::size_t r) { return (1.0 - index[r] * share) * (u[r] * p[r] - v[r] * q[r]); };
    std::size_t r = 0;
    for (; r + 4 <= reach; r += 4) {
      for (std::size_t lane = 0; lane < 4; ++lane) part[lane] += term(r + lane);
    }
    for (; r < reach; ++r) part[r % 4] += term(r);
    for (std::size_t s = 0; s < reach; ++s) {
      const double take = index[s + 1] * share, stay = (1.0 - index[s] * share) * off;
      const double next_u = u[s + 1], next_v = v[s + 1];
      u[s] = stay * u[s] + take * (x * next_u - y * next_v);
      v[s] = stay * v[s] + take * (x * next_v + y * next_u);
    }
    return off * ((part[0] + part[2]) + (part[1] + part[3]));
  }

  const Waves& w_;
  std::size_t stride_;
  std::vector<double> real_, imaginary_, back_real_, back_imaginary_, index_;
};

}  // namespace
}  // namespace limes
