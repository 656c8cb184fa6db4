// A forest's values along walks: from a row z to a row ξ, whose values replace those of z one column after the other.
//
// A column is z's before some step of a walk, and ξ's from then on. So the steps that reach a node of a tree are an interval:
// where both rows go the same way, both of its ends stay. Else the child that ξ goes to begins later, and the other one ends
// earlier. Sixty-four walks go down a tree together, with a byte for each end where there are few columns, else two. A leaf
// is added to a sum where its interval begins, and taken off where it ends: values are running sums.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "bits.h"
#include "tree_masks.h"
#include "trees.h"

namespace limes {

struct WalksTask {
  const Trees& trees;
  const double* value;         // (nodes, outputs)
  std::size_t outputs;
  const double* end;           // ξ, (columns,)
  const double* starts;        // z of each walk, (walks, columns)
  const std::int64_t* orders;  // in which columns become those of ξ, (walks, columns)
  std::size_t walks;
  double* values;              // (walks, columns + 1, outputs)
};

using AddWalks = void (*)(const WalksTask&);

// One for each set of instructions; null where the compiler does not know it.
AddWalks portable_walks();
AddWalks avx2_walks();
AddWalks avx512_walks();

// Steps and ranks of thresholds have two bytes at most.
constexpr std::size_t kMostColumns = 65534, kMostThresholds = 65534;

namespace {

constexpr std::size_t kWalks = 64;
constexpr std::uint16_t kBeyond = 0xFFFF;

// Step is the number of a step, 0 to columns + 1.
template <class Step>
class Walks {
 public:
  explicit Walks(const WalksTask& task)
      : task_(task), trees_(task.trees), thresholds_(task.trees.thresholds()), columns_(trees_.columns()),
        stride_((columns_ + 2) * task.outputs), taken_(columns_), sums_(kWalks * stride_) {
    for (std::size_t node = 0; node < trees_.size(); ++node) {
      const double* leaf = task.value + node * task.outputs;
      std::uint32_t first = 0, past = static_cast<std::uint32_t>(task.outputs);
      while (first < past && leaf[first] == 0.0) ++first;
      while (first < past && leaf[past - 1] == 0.0) --past;
      outputs_.push_back({first, past});
      goes_left_.push_back(trees_.is_split(node) && trees_.goes_left(node, task.end[trees_.column(node)]));
    }
  }

  void add() {
    for (std::size_t start = 0; start < task_.walks; start += kWalks) {
      const std::size_t count = std::min(kWalks, task_.walks - start);
      take(start, count);
      std::fill(sums_.begin(), sums_.end(), 0.0);
      Steps all;
      for (std::size_t w = 0; w < kWalks; ++w) {
        all.first[w] = 0;
        all.past[w] = w < count ? static_cast<Step>(columns_ + 1) : Step{0};
      }
      for (const std::uint32_t root : trees_.roots()) go_down(root, all);
      write(start, count);
    }
  }

 private:
  // The steps of each walk that reach a node.
  struct alignas(64) Steps {
    Step first[kWalks], past[kWalks];

    // Bit w where the steps of walk w are not empty.
    std::uint64_t reached() const {
#if defined(__AVX512BW__)
      if constexpr (sizeof(Step) == 1) {
        return _mm512_cmplt_epu8_mask(_mm512_load_si512(first), _mm512_load_si512(past));
      } else {
        const std::uint64_t low = _mm512_cmplt_epu16_mask(_mm512_load_si512(first), _mm512_load_si512(past));
        const std::uint64_t high = _mm512_cmplt_epu16_mask(_mm512_load_si512(first + 32), _mm512_load_si512(past + 32));
        return low | high << 32;
      }
#elif defined(__AVX2__)
      std::uint64_t none = 0;
      for (std::size_t w = 0; w < kWalks; w += 32) {
        __m256i over;
        if constexpr (sizeof(Step) == 1) {
          over = _mm256_cmpeq_epi8(_mm256_subs_epu8(load256(past + w), load256(first + w)), _mm256_setzero_si256());
        } else {
          const __m256i low = _mm256_subs_epu16(load256(past + w), load256(first + w));
          const __m256i high = _mm256_subs_epu16(load256(past + w + 16), load256(first + w + 16));
          // packs the lower and upper halves of both, which are then put in order
          over = _mm256_packs_epi16(_mm256_cmpeq_epi16(low, _mm256_setzero_si256()),
                                    _mm256_cmpeq_epi16(high, _mm256_setzero_si256()));
          over = _mm256_permute4x64_epi64(over, 0xD8);
        }
        none |= std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(over))} << w;
      }
      return ~none;
#elif defined(__SSE2__)
      std::uint64_t none = 0;
      for (std::size_t w = 0; w < kWalks; w += 16) {
        __m128i over;
        if constexpr (sizeof(Step) == 1) {
          over = _mm_cmpeq_epi8(_mm_subs_epu8(load128(past + w), load128(first + w)), _mm_setzero_si128());
        } else {
          const __m128i low = _mm_subs_epu16(load128(past + w), load128(first + w));
          const __m128i high = _mm_subs_epu16(load128(past + w + 8), load128(first + w + 8));
          over = _mm_packs_epi16(_mm_cmpeq_epi16(low, _mm_setzero_si128()),
                                 _mm_cmpeq_epi16(high, _mm_setzero_si128()));
        }
        none |= std::uint64_t{static_cast<std::uint32_t>(_mm_movemask_epi8(over))} << w;
      }
      return ~none;
#else
      std::uint64_t some = 0;
      for (std::size_t w = 0; w < kWalks; ++w) some |= std::uint64_t{first[w] < past[w]} << w;
      return some;
#endif
    }

#if defined(__AVX2__)
    static __m256i load256(const Step* steps) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(steps)); }
#elif defined(__SSE2__)
    static __m128i load128(const Step* steps) { return _mm_load_si128(reinterpret_cast<const __m128i*>(steps)); }
#endif
  };
  struct Pending {
    Steps steps;
    std::uint64_t reached;
    std::size_t node;
  };
  // z in one column: the number of thresholds below it, its code or -1, and the step from which on the column is ξ's.
  struct alignas(64) Column {
    std::uint16_t rank[kWalks];
    Step from[kWalks];
    std::uint8_t missing[kWalks];
    std::int32_t code[kWalks];
    bool any_missing;
  };

  void take(std::size_t start, std::size_t count) {
    for (std::size_t j = 0; j < columns_; ++j) {
      Column& column = taken_[j];
      column.any_missing = false;
      const double* first = thresholds_.values.data() + thresholds_.starts[j];
      const double* last = thresholds_.values.data() + thresholds_.starts[j + 1];
      for (std::size_t w = 0; w < count; ++w) {
        const double z = task_.starts[(start + w) * columns_ + j];
        column.missing[w] = std::isnan(z);
        column.any_missing |= std::isnan(z);
        column.rank[w] =
            std::isnan(z) ? kBeyond : static_cast<std::uint16_t>(std::lower_bound(first, last, z) - first);
        column.code[w] = trees_.is_code(z) ? static_cast<std::int32_t>(z) : -1;
      }
    }
    for (std::size_t w = 0; w < count; ++w) {
      const std::int64_t* order = task_.orders + (start + w) * columns_;
      for (std::size_t place = 0; place < columns_; ++place) {
        taken_[static_cast<std::size_t>(order[place])].from[w] = static_cast<Step>(place + 1);
      }
    }
  }

  void go_down(std::size_t root, const Steps& all) {
    waiting_.clear();
    Pending now{all, all.reached(), root};
    for (;;) {
      while (trees_.is_split(now.node)) {
        part(now.node);
        Pending other{now.steps, 0, trees_.child(now.node, !goes_left_[now.node])};
        for (std::size_t w = 0; w < kWalks; ++w) {
          other.steps.past[w] = std::min(other.steps.past[w], parted_[w]);
          now.steps.first[w] = std::max(now.steps.first[w], parted_[w]);
        }
        other.reached = other.steps.reached();
        now.reached = now.steps.reached();
        now.node = trees_.child(now.node, goes_left_[now.node]);
        if (now.reached == 0) {
          now = other;
        } else if (other.reached != 0) {
          waiting_.push_back(other);
        }
      }
      add_leaf(now);
      if (waiting_.empty()) return;
      now = waiting_.back();
      waiting_.pop_back();
    }
  }

  // The step from which on a walk goes the way of ξ, where z goes the other way; else 0.
  void part(std::size_t node) {
    const Column& column = taken_[trees_.column(node)];
    const bool goes_left = goes_left_[node];
    if (trees_.is_by_set(node)) {
      for (std::size_t w = 0; w < kWalks; ++w) {
        const std::int32_t code = column.code[w];
        const bool left = code >= 0 && trees_.in_set(node, static_cast<std::size_t>(code));
        parted_[w] = left != goes_left ? column.from[w] : Step{0};
      }
    } else {
      // the number of thresholds up to the node's: z goes left where its rank is smaller
      const std::uint32_t place = thresholds_.of_node[node];
      const auto cut = static_cast<std::uint16_t>(place == 0 ? 0 : place - thresholds_.starts[trees_.column(node)]);
      if (goes_left) {
        for (std::size_t w = 0; w < kWalks; ++w) parted_[w] = column.rank[w] >= cut ? column.from[w] : Step{0};
      } else {
        for (std::size_t w = 0; w < kWalks; ++w) parted_[w] = column.rank[w] < cut ? column.from[w] : Step{0};
      }
    }
    if (column.any_missing && trees_.missing_left(node)) {
      for (std::size_t w = 0; w < kWalks; ++w) {
        if (column.missing[w]) parted_[w] = goes_left ? Step{0} : column.from[w];
      }
    }
  }

  void add_leaf(const Pending& at) {
    const double* leaf = task_.value + at.node * task_.outputs;
    const auto [begin, end] = outputs_[at.node];
    for (std::uint64_t rest = at.reached; rest != 0; rest &= rest - 1) {
      const std::size_t w = lowest_bit(rest);
      double* first = &sums_[w * stride_ + at.steps.first[w] * task_.outputs];
      double* past = &sums_[w * stride_ + at.steps.past[w] * task_.outputs];
      for (std::size_t k = begin; k < end; ++k) {
        first[k] += leaf[k];
        past[k] -= leaf[k];
      }
    }
  }

  void write(std::size_t start, std::size_t count) {
    const std::size_t size = (columns_ + 1) * task_.outputs;
    for (std::size_t w = 0; w < count; ++w) {
      double* values = task_.values + (start + w) * size;
      const double* sums = &sums_[w * stride_];
      for (std::size_t k = 0; k < task_.outputs; ++k) values[k] = sums[k];
      for (std::size_t at = task_.outputs; at < size; ++at) values[at] = values[at - task_.outputs] + sums[at];
    }
  }

  const WalksTask& task_;
  const Trees& trees_;
  const Thresholds& thresholds_;
  const std::size_t columns_, stride_;  // of the sums of a walk
  std::vector<Column> taken_;
  std::vector<std::array<std::uint32_t, 2>> outputs_;  // of each node that are not 0: a tree is often of one class
  std::vector<char> goes_left_;                        // whether ξ does
  std::vector<double> sums_;
  std::vector<Pending> waiting_;
  alignas(64) Step parted_[kWalks];
};

inline void walk_down(const WalksTask& task) {
  if (task.trees.columns() < std::numeric_limits<std::uint8_t>::max()) {
    Walks<std::uint8_t>(task).add();
  } else {
    Walks<std::uint16_t>(task).add();
  }
}

}  // namespace
}  // namespace limes
