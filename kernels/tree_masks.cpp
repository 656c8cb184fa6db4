#include "tree_masks.h"

#include <algorithm>
#include <cmath>

#include "bits.h"

namespace limes {

Thresholds::Thresholds(const Trees& trees) : starts(trees.columns() + 1, 0), of_node(trees.size(), 0) {
  std::vector<std::vector<double>> columns(trees.columns());
  const auto compares = [&](std::size_t node) {
    return trees.is_split(node) && !trees.is_by_set(node) && !std::isnan(trees.threshold(node));
  };
  for (std::size_t node = 0; node < trees.size(); ++node) {
    if (compares(node)) columns[trees.column(node)].push_back(trees.threshold(node));
  }
  for (std::size_t j = 0; j < columns.size(); ++j) {
    std::sort(columns[j].begin(), columns[j].end());
    columns[j].erase(std::unique(columns[j].begin(), columns[j].end()), columns[j].end());
    values.insert(values.end(), columns[j].begin(), columns[j].end());
    starts[j + 1] = values.size();
  }
  for (std::size_t node = 0; node < trees.size(); ++node) {
    if (!compares(node)) continue;
    const auto& column = columns[trees.column(node)];
    const auto at = std::lower_bound(column.begin(), column.end(), trees.threshold(node)) - column.begin();
    of_node[node] = static_cast<std::uint32_t>(1 + starts[trees.column(node)] + static_cast<std::size_t>(at));
  }
}

namespace {

// Position of the first of n >= 1 ascending cuts that is at least v, without branches.
std::uint32_t first_at_least(const double* cuts, std::size_t n, double v) {
  const double* at = cuts;
  while (n > 1) {
    const std::size_t half = n / 2;
    at += at[half - 1] < v ? half : 0;
    n -= half;
  }
  return static_cast<std::uint32_t>(at - cuts) + (*at < v ? 1u : 0u);
}

// Masks of up to 64 * kWords rows.
template <std::size_t kWords>
class Block {
 public:
  static constexpr std::size_t kRows = 64 * kWords;

  Block(const Trees& trees, const Thresholds& thresholds)
      : trees_(trees), thresholds_(thresholds), below_(thresholds.values.size() + 1),
        missing_(trees.columns() * kWords), any_missing_(trees.columns()), coded_(trees.columns()) {
    std::vector<bool> by_set(trees.columns(), false);
    for (std::size_t node = 0; node < trees.size(); ++node) {
      if (trees.is_split(node) && trees.is_by_set(node)) by_set[trees.column(node)] = true;
    }
    for (std::size_t j = 0; j < trees.columns(); ++j) {
      if (by_set[j]) sets_.push_back(j);
    }
  }

  // Compute the masks of rows (count, width).
  void take(const double* x, std::size_t count, std::size_t width) {
    masks_.assign(kWords, 0);  // the first mask is empty
    std::fill(missing_.begin(), missing_.end(), 0);
    std::fill(any_missing_.begin(), any_missing_.end(), false);
    for (std::size_t j = 0; j < trees_.columns(); ++j) {
      if (thresholds_.starts[j] < thresholds_.starts[j + 1]) take_column(j, x, count, width);
    }
    for (const std::size_t j : sets_) take_codes(j, x, count, width);
    for (std::size_t w = 0; w < kWords; ++w) {
      const std::size_t first = 64 * w;
      all_[w] = count >= first + 64 ? ~std::uint64_t{0} : count > first ? (std::uint64_t{1} << (count - first)) - 1 : 0;
    }
  }

  // Call leaf(node, mask) for each leaf of a tree that a row reaches.
  template <typename Leaf>
  void go_down(std::size_t root, const Leaf& leaf) {
    pending_.clear();
    Pending now{root, all_};
    for (;;) {
      while (trees_.is_split(now.node)) {
        Mask left = rows_left(now.node), right;
        std::uint64_t any_left = 0, any_right = 0;
        for (std::size_t w = 0; w < kWords; ++w) {
          left.at[w] &= now.rows.at[w];
          right.at[w] = now.rows.at[w] & ~left.at[w];
          any_left |= left.at[w];
          any_right |= right.at[w];
        }
        if (any_left && any_right) pending_.push_back({trees_.child(now.node, false), right});
        now.node = trees_.child(now.node, any_left != 0);
        if (any_left) now.rows = left;
      }
      leaf(now.node, now.rows.at);
      if (pending_.empty()) return;
      now = pending_.back();
      pending_.pop_back();
    }
  }

 private:
  struct Mask {
    std::uint64_t at[kWords];
    std::uint64_t& operator[](std::size_t w) { return at[w]; }
  };
  struct Pending {
    std::size_t node;
    Mask rows;
  };

  static void set(std::uint64_t* mask, std::size_t row) { mask[row / 64] |= std::uint64_t{1} << (row % 64); }

  void note_missing(std::size_t column, std::size_t row) {
    set(&missing_[column * kWords], row);
    any_missing_[column] = true;
  }

  // Rows between two thresholds are one step of the masks: those below a threshold are the steps up to it.
  void take_column(std::size_t j, const double* x, std::size_t count, std::size_t width) {
    const std::size_t start = thresholds_.starts[j], size = thresholds_.starts[j + 1] - start;
    const double* cuts = thresholds_.values.data() + start;
    std::uint32_t* below = &below_[1 + start];
    std::fill(below, below + size, 0);
    for (std::size_t i = 0; i < count; ++i) {
      const double v = x[i * width + j];
      if (std::isnan(v)) {
        note_missing(j, i);
        rank_[i] = static_cast<std::uint32_t>(size);
        continue;
      }
      rank_[i] = first_at_least(cuts, size, v);
      if (rank_[i] < size) below[rank_[i]] = 1;
    }
    const auto first = static_cast<std::uint32_t>(masks_.size() / kWords);
    std::uint32_t step = 0;
    for (std::size_t r = 0; r < size; ++r) {
      step += below[r];
      below[r] = step > 0 ? first + step - 1 : 0;
    }
    masks_.resize(masks_.size() + step * kWords, 0);
    for (std::size_t i = 0; i < count; ++i) {
      if (rank_[i] < size) set(&masks_[below[rank_[i]] * kWords], i);
    }
    for (std::size_t at = (first + std::size_t{1}) * kWords; at < masks_.size(); ++at) masks_[at] |= masks_[at - kWords];
  }

  void take_codes(std::size_t j, const double* x, std::size_t count, std::size_t width) {
    coded_[j] = masks_.size();
    masks_.resize(masks_.size() + trees_.codes() * kWords, 0);
    for (std::size_t i = 0; i < count; ++i) {
      const double v = x[i * width + j];
      if (std::isnan(v)) {
        note_missing(j, i);
      } else if (trees_.is_code(v)) {
        set(&masks_[coded_[j] + static_cast<std::size_t>(v) * kWords], i);
      }
    }
  }

  Mask rows_left(std::size_t node) const {
    const std::size_t j = trees_.column(node);
    Mask left{};
    if (trees_.is_by_set(node)) {
      for (std::size_t code = 0; code < trees_.codes(); ++code) {
        if (trees_.in_set(node, code)) unite(left, &masks_[coded_[j] + code * kWords]);
      }
    } else {
      const std::uint64_t* below = &masks_[below_[thresholds_.of_node[node]] * kWords];
      std::copy(below, below + kWords, left.at);
    }
    if (any_missing_[j] && trees_.missing_left(node)) unite(left, &missing_[j * kWords]);
    return left;
  }

  static void unite(Mask& mask, const std::uint64_t* other) {
    for (std::size_t w = 0; w < kWords; ++w) mask[w] |= other[w];
  }

  const Trees& trees_;
  const Thresholds& thresholds_;
  std::vector<std::size_t> sets_;       // columns that are split by sets
  std::vector<std::uint32_t> below_;    // mask of the rows below each threshold
  std::vector<std::uint64_t> masks_, missing_;
  std::vector<char> any_missing_;
  std::vector<std::size_t> coded_;      // first mask of a column's codes
  std::vector<Pending> pending_;
  std::uint32_t rank_[kRows];
  Mask all_;
};

template <std::size_t kWords>
void add_block(const Trees& trees, const Thresholds& thresholds, const double* x, std::size_t count,
               std::size_t width, const double* value, std::size_t outputs, double* total) {
  Block<kWords> block(trees, thresholds);
  for (std::size_t start = 0; start < count; start += Block<kWords>::kRows) {
    block.take(x + start * width, std::min(count - start, Block<kWords>::kRows), width);
    double* sums = total + start * outputs;
    for (const std::uint32_t root : trees.roots()) {
      block.go_down(root, [&](std::size_t node, const std::uint64_t* rows) {
        const double* leaf = value + node * outputs;
        for (std::size_t w = 0; w < kWords; ++w) {
          for (std::uint64_t rest = rows[w]; rest != 0; rest &= rest - 1) {
            double* sum = sums + (64 * w + lowest_bit(rest)) * outputs;
            for (std::size_t k = 0; k < outputs; ++k) sum[k] += leaf[k];
          }
        }
      });
    }
  }
}

}  // namespace

void add_by_masks(const Trees& trees, const Thresholds& thresholds, const double* x, std::size_t count,
                  std::size_t width, const double* value, std::size_t outputs, double* total) {
  const auto add = count <= 64 ? &add_block<1> : &add_block<8>;
  add(trees, thresholds, x, count, width, value, outputs, total);
}

}  // namespace limes
