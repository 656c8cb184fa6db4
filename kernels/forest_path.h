// One pass over the splits of a forest, depth first, for a block of rows at a time.
//
// What a split does to a row depends on the row's cell alone, so that a loop over rows is a look-up in a table of W
// numbers and a multiplication. With up to 16 cells the table stays in registers and a permute looks up as many rows at
// once as a register holds: 2 to 3 times as fast as loads from memory. Each set of instructions has its own `Lanes`:
//
//     Real                       a register of doubles             kRows   how many
//     load, store, all, multiply, add, subtract, multiply_add(a, b, c) = ab + c
//     Cells, load_cells          cells as `look_up` wants them     encode  a cell as it is stored for that
//     Table<W>, load_table<W>    W numbers                         look_up<W>(table, cells)
//
// A row's numbers depend on its lane in nothing: they are the same in any block, at any place of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "splits.h"

namespace limes {

// Rows of a block; a multiple of every kRows. Sums of one path over this many rows fit the nearest cache.
constexpr std::size_t kBlock = 64;

struct Table {
  const double* data;  // (splits, 4, width), aligned to 64 bytes
  std::size_t width;
};

// The open path: probabilities to reach its nodes, and sums of the leaves below them.
template <typename Lanes, std::size_t W>
class Path {
 public:
  // For `size` rows at a time, a multiple of kBlock.
  Path(const Splits& splits, Table table, std::size_t size)
      : s_(splits),
        table_(table),
        size_(size),
        probability_(splits.levels * size_, 1.0),
        total_(splits.levels * splits.outputs * size_),
        cells_(splits.columns * size_),
        open_(splits.levels) {}

  // Take rows with these cells (rows, columns); a block is filled up by the last one.
  void take(const std::uint32_t* cells, std::size_t rows) {
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t j = 0; j < s_.columns; ++j) {
        const std::size_t row = i < rows ? i : rows - 1;
        cells_[j * size_ + i] = Lanes::encode(cells[row * s_.columns + j]);
      }
    }
  }

  // Call pass.enter(split, level) on the way down, and pass.close(level) when a subtree is finished.
  template <typename Pass>
  void walk(Pass& pass) {
    std::size_t open = 0;  // levels with an unfinished subtree
    for (std::size_t s = 0; s < s_.count(); ++s) {
      const std::size_t level = s_.depth[s];
      while (open > level) pass.close(--open);
      if (level > 0) go_down(s, level);
      open_[level] = s;
      if (!s_.has_leaf[s]) std::memset(total(level, 0), 0, s_.outputs * size_ * sizeof(double));
      pass.enter(s, level);
      open = level + 1;
    }
    while (open > 0) pass.close(--open);
  }

  std::size_t open(std::size_t level) const { return open_[level]; }
  const std::int64_t* cells(std::size_t j) const { return &cells_[j * size_]; }
  const double* probability(std::size_t level) const { return &probability_[level * size_]; }
  double* total(std::size_t level, std::size_t k) { return &total_[(level * s_.outputs + k) * size_]; }
  const double* table(std::size_t split, std::size_t quantity) const {
    return table_.data + (split * 4 + quantity) * table_.width;
  }
  std::size_t width() const { return W > 0 ? W : table_.width; }

 private:
  using Real = typename Lanes::Real;

  void go_down(std::size_t s, std::size_t level) {
    const std::size_t above = s_.parent[s];
    const auto ratio = Lanes::template load_table<W>(table(above, s_.side[s]));
    const std::int64_t* cells = &cells_[s_.column[above] * size_];
    const double* before = &probability_[(level - 1) * size_];
    double* after = &probability_[level * size_];
    for (std::size_t i = 0, size = size_; i < size; i += Lanes::kRows) {
      const Real factor = Lanes::template look_up<W>(ratio, Lanes::load_cells(cells + i));
      Lanes::store(after + i, Lanes::multiply(Lanes::load(before + i), factor));
    }
  }

  const Splits& s_;
  const Table table_;
  const std::size_t size_;
  std::vector<double> probability_, total_;
  std::vector<std::int64_t> cells_;
  std::vector<std::size_t> open_;
};

// Tables are padded to 4, 8, 12 or 16 numbers; wider ones are looked up in memory.
template <typename Function>
Function of_width(std::size_t width, Function four, Function eight, Function twelve, Function sixteen, Function any) {
  switch (width) {
    case 4: return four;
    case 8: return eight;
    case 12: return twelve;
    case 16: return sixteen;
    default: return any;
  }
}

}  // namespace limes
