// What the columns of a path gain by its leaf, against background rows, under the joint law (joint_contributions.cpp has
// the formulas).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bits.h"

namespace limes {

// Columns of a path are the bits of a mask.
constexpr std::size_t kPathColumns = 64;
// Splits on a path: each is a call inside the one above.
constexpr std::size_t kDeepest = 1024;

// Shares (x - 1)! y! / (x + y)! of columns of X, x > 0; those of columns of Y have x and y exchanged.
struct Shares {
  Shares() : of((kPathColumns + 1) * (kPathColumns + 1), 0.0) {
    for (std::size_t x = 1; x <= kPathColumns; ++x) {
      double share = 1.0 / static_cast<double>(x);
      for (std::size_t y = 0; y <= kPathColumns; ++y) {
        of[x * (kPathColumns + 1) + y] = share;
        share *= static_cast<double>(y + 1) / static_cast<double>(x + y + 1);
      }
    }
  }
  static const Shares& table() {
    static const Shares shares;
    return shares;
  }
  double operator()(std::size_t x, std::size_t y) const { return of[x * (kPathColumns + 1) + y]; }
  std::vector<double> of;
};

// What a column gains: in all, alone and last; four numbers lie in two registers.
struct Gain {
  double value = 0.0, alone = 0.0, last = 0.0, unused = 0.0;
  void add(const Gain& other, double times) {
    value += times * other.value;
    alone += times * other.alone;
    last += times * other.last;
    unused += times * other.unused;
  }
};

// Gains of the path's columns by a leaf of value 1, for a row that is outside the intervals of `failed`: `start` with the
// row, `meet` all background rows that are in these intervals, then `end`.
class LeafGains {
 public:
  void start(std::uint64_t failed, std::size_t columns) {
    failed_ = touched_ = failed;
    y_ = count_bits(failed);
    lost_ = total_ = none_ = 0.0;
    std::fill_n(of_.begin(), columns, Gain{});
  }

  // Background rows of this weight are outside the intervals of `only`, of x columns.
  void meet(std::uint64_t only, std::size_t x, double weight) {
    touched_ |= only;
    total_ += weight;
    lost_ += weight * shares_(y_, x);
    if (x == 0) none_ += weight;
    if (x == 1) of_[lowest_bit(only)].alone += weight;
    const double gain = weight * shares_(x, y_), last = y_ == 0 ? weight : 0.0;
    for (std::uint64_t rest = only; rest != 0; rest &= rest - 1) {
      Gain& of_column = of_[lowest_bit(rest)];
      of_column.value += gain;
      of_column.last += last;
    }
  }

  void end() {
    for (std::uint64_t rest = failed_; rest != 0; rest &= rest - 1) {
      Gain& of_column = of_[lowest_bit(rest)];
      of_column.value -= lost_;
      of_column.alone -= none_;
      if (y_ == 1) of_column.last -= total_;
    }
  }

  // Columns that may have gained, and the weight of background rows that are in all intervals.
  std::uint64_t touched() const { return touched_; }
  double none() const { return none_; }
  const Gain& operator[](std::size_t column) const { return of_[column]; }

 private:
  const Shares& shares_ = Shares::table();
  std::array<Gain, kPathColumns> of_{};
  std::uint64_t failed_ = 0, touched_ = 0;
  std::size_t y_ = 0;
  double lost_ = 0.0, total_ = 0.0, none_ = 0.0;
};

}  // namespace limes
