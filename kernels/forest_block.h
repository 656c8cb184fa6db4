// The exact moments of a forest at many rows, a block of rows at a time: the formulas are those of forest_row.cpp, with
// rows in the inner loop (forest_path.h).
#pragma once

#include "forest_path.h"

namespace limes {

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
        path_(splits, table, kBlock),
        effect_(splits.columns * splits.outputs * kBlock),
        mean_(splits.outputs * kBlock),
        combined_(2 * path_.width()) {}

  void explain(const std::uint32_t* cells, std::size_t rows, double* mean, double* contrast) {
    std::memset(effect_.data(), 0, effect_.size() * sizeof(double));
    std::memset(mean_.data(), 0, mean_.size() * sizeof(double));
    path_.take(cells, rows);
    path_.walk(*this);
    write(rows, mean, contrast);
  }

  void enter(std::size_t s, std::size_t level) {
    if (!s_.has_leaf[s]) return;
    for (std::size_t k = 0; k < s_.outputs; ++k) add_leaves(s, level, k);
  }

  // Hand what a finished subtree has summed up to its edge's column and to its parent.
  void close(std::size_t level) {
    if (level == 0) {
      const double* sums = path_.total(0, 0);
      for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] += sums[i];
      return;
    }
    const std::size_t s = path_.open(level), above = s_.parent[s], j = s_.column[above];
    const auto change = Lanes::template load_table<W>(path_.table(above, 2 + s_.side[s]));
    const std::int64_t* cells = path_.cells(j);
    for (std::size_t k = 0; k < s_.outputs; ++k) {
      const double* sums = path_.total(level, k);
      double *upper = path_.total(level - 1, k), *effects = effect(j, k);
      for (std::size_t i = 0; i < kBlock; i += Lanes::kRows) {
        const Real g = Lanes::load(sums + i);
        const Real moved = Lanes::template look_up<W>(change, Lanes::load_cells(cells + i));
        Lanes::store(upper + i, Lanes::add(Lanes::load(upper + i), g));
        Lanes::store(effects + i, Lanes::multiply_add(g, moved, Lanes::load(effects + i)));
      }
    }
  }

 private:
  using Real = typename Lanes::Real;

  double* effect(std::size_t j, std::size_t k) { return &effect_[(j * s_.outputs + k) * kBlock]; }

  // Both children at once; one that is no leaf has the value 0 here.
  void add_leaves(std::size_t s, std::size_t level, std::size_t k) {
    const double left = s_.leaves[2 * s * s_.outputs + k], right = s_.leaves[(2 * s + 1) * s_.outputs + k];
    const double *ratio_left = path_.table(s, 0), *ratio_right = path_.table(s, 1), *change_left = path_.table(s, 2),
                 *change_right = path_.table(s, 3);
    const std::size_t width = path_.width();
    double *sum = combined_.data(), *moved = sum + width;
    for (std::size_t v = 0; v < width; ++v) {
      const double on_left = ratio_left[v] * left, on_right = ratio_right[v] * right;
      sum[v] = on_left + on_right;
      moved[v] = on_left * change_left[v] + on_right * change_right[v];
    }
    const auto sums = Lanes::template load_table<W>(sum), changes = Lanes::template load_table<W>(moved);
    const std::int64_t* cells = path_.cells(s_.column[s]);
    const double* probability = path_.probability(level);
    double *totals = path_.total(level, k), *effects = effect(s_.column[s], k);
    for (std::size_t i = 0; i < kBlock; i += Lanes::kRows) {
      const auto cell = Lanes::load_cells(cells + i);
      const Real p = Lanes::load(probability + i);
      Lanes::store(totals + i, Lanes::multiply(p, Lanes::template look_up<W>(sums, cell)));
      Lanes::store(effects + i, Lanes::multiply_add(p, Lanes::template look_up<W>(changes, cell), Lanes::load(effects + i)));
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
  Path<Lanes, W> path_;
  std::vector<double> effect_, mean_, combined_;
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

template <typename Lanes>
ExplainRows rows_of_width(std::size_t width) {
  return of_width<ExplainRows>(width, &explain_rows<Lanes, 4>, &explain_rows<Lanes, 8>, &explain_rows<Lanes, 12>,
                               &explain_rows<Lanes, 16>, &explain_rows<Lanes, 0>);
}

}  // namespace limes
