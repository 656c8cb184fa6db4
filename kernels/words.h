// Recursions over the words of a text, for linear models on normalised TF-IDF.
//
// With r of k words kept, A[r] = E prod y and, for each of q outputs, D[r] = E (c.z) prod y. Word k is among the r kept
// with probability r/k, so that
//     A_k[r] = (1 - r/k) A_{k-1}[r] + (r/k) y_k A_{k-1}[r-1]
//     D_k[r] = (1 - r/k) D_{k-1}[r] + (r/k) y_k (D_{k-1}[r-1] + c_k A_{k-1}[r-1]).
// State rows (1 + q, width) hold A and the D. Adjoint rows hold the derivatives of the result by D (the same for all
// outputs) and, for each output, by A.

//
// The loops over r are plain: compilers make four or eight of them at once where they may. words_avx2.cpp is this file
// once more, compiled for processors with AVX2.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace limes {

struct Text {
  std::size_t words, outputs, others, width;
  const double *y;       // (words,)
  const double *c;       // (words, outputs)
  const double *within;  // (width or more,)
  const double *start;   // (1 + outputs, others + 1), the state before the first word
  double weight;
};

struct TextSums {
  double *profile;  // (outputs, stride)
  std::size_t stride;
  double *loss;     // (words, outputs)
  double *rest;     // (1 + outputs, others + 1)
};

using AddNode = void (*)(const Text&, const TextSums&);

AddNode portable_node();
AddNode avx2_node();

namespace {

// Words between two states that are kept; the others are computed again on the way back.
constexpr std::size_t kBlock = 128;

struct Rows {
  double* data;
  std::size_t width;
  double* operator[](std::size_t row) const { return data + row * width; }
};

class Node {
 public:
  explicit Node(const Text& text) : t_(text), index_(text.width + 1) {
    for (std::size_t r = 0; r < index_.size(); ++r) index_[r] = static_cast<double>(r);
  }

  void add(const TextSums& sums) const {
    const std::size_t rows = 1 + t_.outputs, size = rows * t_.width, known = t_.others + 1;
    const std::size_t common = std::min(t_.width, known), blocks = std::max<std::size_t>(1, (t_.words + kBlock - 1) / kBlock);
    std::vector<double> kept(blocks * size), states((std::min(t_.words, kBlock) + 1) * size, 0.0), adjoint(size, 0.0);
    const auto state = [&](std::size_t i) { return Rows{&states[i * size], t_.width}; };
    const auto run = [&](std::size_t first, std::size_t end) {
      for (std::size_t j = first; j < end; ++j) advance(state(j - first), state(j - first + 1), j);
    };
    for (std::size_t q = 0; q < rows; ++q) std::copy_n(t_.start + q * known, common, state(0)[q]);
    for (std::size_t b = 0; b < blocks; ++b) {
      if (b > 0) std::copy_n(&states[kBlock * size], size, states.data());
      std::copy_n(states.data(), size, &kept[b * size]);
      run(b * kBlock, std::min(t_.words, (b + 1) * kBlock));
    }
    const Rows whole = state(t_.words - (blocks - 1) * kBlock), back{adjoint.data(), t_.width};
    for (std::size_t q = 0; q < t_.outputs; ++q) {
      for (std::size_t r = 0; r < t_.width; ++r) sums.profile[q * sums.stride + r] += t_.weight * whole[1 + q][r];
    }
    std::copy_n(t_.within, t_.width, back[0]);
    for (std::size_t b = blocks; b-- > 0;) {
      const std::size_t first = b * kBlock, end = std::min(t_.words, first + kBlock);
      if (b + 1 < blocks) {
        std::copy_n(&kept[b * size], size, states.data());
        run(first, end);
      }
      for (std::size_t j = end; j-- > first;) retreat(state(j - first), back, j, sums.loss + j * t_.outputs);
    }
    for (std::size_t q = 0; q < rows; ++q) std::copy_n(back[q], common, sums.rest + q * known);
  }

 private:
  // The state after word j, which is the k-th with the others.
  void advance(Rows before, Rows after, std::size_t j) const {
    const std::size_t k = t_.others + j + 1, last = std::min(k, t_.width - 1);
    const double share = 1.0 / static_cast<double>(k), y = t_.y[j];
    const double *__restrict a = before[0], *__restrict index = index_.data();
    double *__restrict next = after[0];
    next[0] = a[0];
    for (std::size_t r = 1; r <= last; ++r) {
      const double take = index[r] * share;
      next[r] = (1.0 - take) * a[r] + take * y * a[r - 1];
    }
    for (std::size_t q = 0; q < t_.outputs; ++q) {
      const double c = t_.c[j * t_.outputs + q], *__restrict d = before[1 + q];
      double *__restrict moved = after[1 + q];
      moved[0] = d[0];
      for (std::size_t r = 1; r <= last; ++r) {
        const double take = index[r] * share;
        moved[r] = (1.0 - take) * d[r] + take * y * (d[r - 1] + c * a[r - 1]);
      }
    }
    if (last + 1 < t_.width) {
      for (std::size_t q = 0; q <= t_.outputs; ++q) after[q][last + 1] = 0.0;
    }
  }

  // Add to loss (outputs,) what the result owes to texts without word j, and turn the adjoint after it into the one
  // before it.
  void retreat(Rows before, Rows adjoint, std::size_t j, double* loss) const {
    const std::size_t k = t_.others + j + 1, last = std::min(k, t_.width - 1), reach = std::min(k, t_.width);
    const double share = 1.0 / static_cast<double>(k), y = t_.y[j], *__restrict index = index_.data();
    double *__restrict shared = adjoint[0];
    for (std::size_t q = 0; q < t_.outputs; ++q) {
      const double *__restrict a = before[0], *__restrict d = before[1 + q], c = t_.c[j * t_.outputs + q];
      double *__restrict moved = adjoint[1 + q];
      const auto term = [&](std::size_t r) { return (1.0 - index[r] * share) * (shared[r] * d[r] + moved[r] * a[r]); };
      // four sums beside each other, as registers hold them
      double part[4] = {0.0, 0.0, 0.0, 0.0};
      std::size_t r = 0;
      for (; r + 4 <= reach; r += 4) {
        for (std::size_t lane = 0; lane < 4; ++lane) part[lane] += term(r + lane);
      }
      for (; r < reach; ++r) part[r % 4] += term(r);
      loss[q] += t_.weight * ((part[0] + part[2]) + (part[1] + part[3]));
      for (std::size_t s = 0; s < last; ++s) {
        const double take = index[s + 1] * share * y;
        moved[s] = (1.0 - index[s] * share) * moved[s] + take * (moved[s + 1] + c * shared[s + 1]);
      }
      if (last < k) moved[last] *= 1.0 - index[last] * share;
    }
    for (std::size_t s = 0; s < last; ++s) {
      shared[s] = (1.0 - index[s] * share) * shared[s] + index[s + 1] * share * y * shared[s + 1];
    }
    if (last < k) shared[last] *= 1.0 - index[last] * share;
  }

  const Text& t_;
  std::vector<double> index_;
};

}  // namespace
}  // namespace limes
