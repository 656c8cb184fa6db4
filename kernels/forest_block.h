// The exact moments of a forest at many rows, a block of rows at a time.
//
// The formulas are those of forest_row.cpp, with rows in the inner loop. What a split does to a row depends on the
// row's cell alone, so that a loop over rows is a look-up in a table of W numbers and a multiplication. With up to 16
// cells the table stays in registers and a permute looks up as many rows at once as a register holds: 2 to 3 times as
// fast as loads from memory. Each set of instructions has its own `Lanes`:
//
//     Real                       a register of doubles             kRows   how many
//     load, store, all, multiply, add, multiply_add(a, b, c) = ab + c
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

// Rows of a block; a multiple of every kRows. Sums of one path over so many rows fit the nearest cache.
constexpr std::size_t kBlock = 64;

struct Table {
  const double* data;  // (splits, 4, width), aligned to 64 bytes
  std::size_t width;
};

// Cells (rows, columns), row by row; adds to mean (rows, outputs) and contrast (rows, columns, outputs).
using ExplainRows = void (*)(const Splits&, Table, const std::uint32_t* cells, std::size_t rows, double* mean,
                             double* contrast);

// One for each set of instructions; null where the compiler does not know it.
ExplainRows portable_rows(std::size_t width);
ExplainRows avx2_rows(std::size_t width);
ExplainRows avx512_rows(std::size_t width);

template <typename Lanes, std::size_t W>
class Block {
 public:
  Block(const Splits& splits, Table table)
      : s_(splits),
        table_(table),
        probability_(splits.levels * kBlock),
        total_(splits.levels * splits.outputs * kBlock),
        effect_(splits.columns * splits.outputs * kBlock),
        mean_(splits.outputs * kBlock),
        cells_(splits.columns * kBlock),
        open_(splits.levels),
        combined_(2 * W) {}

  void explain(const std::uint32_t* cells, std::size_t rows, double* mean, double* contrast) {
    begin(cells, rows);
    std::size_t open = 0;  // levels with an unfinished subtree
    for (std::size_t s = 0; s < s_.count(); ++s) {
      const std::size_t level = s_.depth[s];
      while (open > level) close(--open);
      if (level > 0) go_down(s, level);
      if (s_.has_leaf[s]) {
        for (std::size_t k = 0; k < s_.outputs; ++k) add_leaves(s, level, k);
      } else {
        std::memset(total(level, 0), 0, s_.outputs * kBlock * sizeof(double));
      }
      open_[level] = s;
      open = level + 1;
    }
    while (open > 0) close(--open);
    write(rows, mean, contrast);
  }

 private:
  using Real = typename Lanes::Real;

  double* total(std::size_t level, std::size_t k) { return &total_[(level * s_.outputs + k) * kBlock]; }
  double* effect(std::size_t j, std::size_t k) { return &effect_[(j * s_.outputs + k) * kBlock]; }
  const double* table(std::size_t split, std::size_t quantity) const {
    return table_.data + (split * 4 + quantity) * table_.width;
  }

  void begin(const std::uint32_t* cells, std::size_t rows) {
    std::memset(effect_.data(), 0, effect_.size() * sizeof(double));
    std::memset(mean_.data(), 0, mean_.size() * sizeof(double));
    for (std::size_t i = 0; i < kBlock; ++i) {
      probability_[i] = 1.0;
      for (std::size_t j = 0; j < s_.columns; ++j) {
        // rows beyond the last are the last once more, and are not written
        const std::size_t row = i < rows ? i : rows - 1;
        cells_[j * kBlock + i] = Lanes::encode(cells[row * s_.columns + j]);
      }
    }
  }

  void go_down(std::size_t s, std::size_t level) {
    const std::size_t above = s_.parent[s];
    const auto ratio = Lanes::template load_table<W>(table(above, s_.side[s]));
    const std::int64_t* cells = &cells_[s_.column[above] * kBlock];
    const double* before = &probability_[(level - 1) * kBlock];
    double* after = &probability_[level * kBlock];
    for (std::size_t i = 0; i < kBlock; i += Lanes::kRows) {
      const Real factor = Lanes::template look_up<W>(ratio, Lanes::load_cells(cells + i));
      Lanes::store(after + i, Lanes::multiply(Lanes::load(before + i), factor));
    }
  }

  // Both children at once; one that is no leaf has the value 0 here.
  void add_leaves(std::size_t s, std::size_t level, std::size_t k) {
    const double left = s_.leaves[2 * s * s_.outputs + k], right = s_.leaves[(2 * s + 1) * s_.outputs + k];
    const double *ratio_left = table(s, 0), *ratio_right = table(s, 1), *change_left = table(s, 2),
                 *change_right = table(s, 3);
    const std::size_t width = W > 0 ? W : table_.width;
    if (W == 0) combined_.resize(2 * width);
    double *sum = combined_.data(), *moved = sum + width;
    for (std::size_t v = 0; v < width; ++v) {
      const double on_left = ratio_left[v] * left, on_right = ratio_right[v] * right;
      sum[v] = on_left + on_right;
      moved[v] = on_left * change_left[v] + on_right * change_right[v];
    }
    const auto sums = Lanes::template load_table<W>(sum), changes = Lanes::template load_table<W>(moved);
    const std::int64_t* cells = &cells_[s_.column[s] * kBlock];
    const double* probability = &probability_[level * kBlock];
    double *totals = total(level, k), *effects = effect(s_.column[s], k);
    for (std::size_t i = 0; i < kBlock; i += Lanes::kRows) {
      const auto cell = Lanes::load_cells(cells + i);
      const Real p = Lanes::load(probability + i);
      Lanes::store(totals + i, Lanes::multiply(p, Lanes::template look_up<W>(sums, cell)));
      Lanes::store(effects + i, Lanes::multiply_add(p, Lanes::template look_up<W>(changes, cell), Lanes::load(effects + i)));
    }
  }

  // Hand what a finished subtree has summed up to its edge's column and to its parent.
  void close(std::size_t level) {
    if (level == 0) {
      for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] += total_[i];
      return;
    }
    const std::size_t s = open_[level], above = s_.parent[s], j = s_.column[above];
    const auto change = Lanes::template load_table<W>(table(above, 2 + s_.side[s]));
    const std::int64_t* cells = &cells_[j * kBlock];
    for (std::size_t k = 0; k < s_.outputs; ++k) {
      const double* sums = total(level, k);
      double *upper = total(level - 1, k), *effects = effect(j, k);
      for (std::size_t i = 0; i < kBlock; i += Lanes::kRows) {
        const Real g = Lanes::load(sums + i);
        const Real moved = Lanes::template look_up<W>(change, Lanes::load_cells(cells + i));
        Lanes::store(upper + i, Lanes::add(Lanes::load(upper + i), g));
        Lanes::store(effects + i, Lanes::multiply_add(g, moved, Lanes::load(effects + i)));
      }
    }
  }

  void write(std::size_t rows, double* mean, double* contrast) {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t k = 0; k < s_.outputs; ++k) {
        mean[i * s_.outputs + k] += mean_[k * kBlock + i];
        for (std::size_t j = 0; j < s_.columns; ++j) {
          contrast[(i * s_.columns + j) * s_.outputs + k] += effect(j, k)[i];
        }
      }
    }
  }

  const Splits& s_;
  const Table table_;
  std::vector<double> probability_, total_, effect_, mean_;
  std::vector<std::int64_t> cells_;
  std::vector<std::size_t> open_;
  std::vector<double> combined_;
};

template <typename Lanes, std::size_t W>
void explain_rows(const Splits& splits, Table table, const std::uint32_t* cells, std::size_t rows, double* mean,
                  double* contrast) {
  Block<Lanes, W> block(splits, table);
  for (std::size_t first = 0; first < rows; first += kBlock) {
    const std::size_t count = rows - first < kBlock ? rows - first : kBlock;
    block.explain(cells + first * splits.columns, count, mean + first * splits.outputs,
                  contrast + first * splits.columns * splits.outputs);
  }
}

// Tables are padded to 4, 8, 12 or 16 numbers; wider ones are looked up in memory.
template <typename Lanes>
ExplainRows rows_of_width(std::size_t width) {
  switch (width) {
    case 4: return &explain_rows<Lanes, 4>;
    case 8: return &explain_rows<Lanes, 8>;
    case 12: return &explain_rows<Lanes, 12>;
    case 16: return &explain_rows<Lanes, 16>;
    default: return &explain_rows<Lanes, 0>;
  }
}

}  // namespace limes
