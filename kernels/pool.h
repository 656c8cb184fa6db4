// Weighted sums over a pool's rows around explained rows, whose features are z_ij = 1[row i has the explained row's cell
// in column j] and the constant z_i0 = 1. Row i weighs w_i = weights[its number of columns that match].
//
//     sums    sum_i w_i z_ij v_iq, over parts of the rows
//     gram    sum_i w_i z_ij z_il, over parts of the rows; sum_i w_i² z_ij and sum_i z_ij
//     errors  with a value a_i = sum_j coef_j z_ij at each row, what standard errors are made of (see `Errors`)
//
// Three things make them fast. (1) Six columns of z are one number below 64, the row's code: a row adds its values to one
// of 64 sums for six columns, and those of a column are added up in the end; a_i is likewise a sum of looked-up numbers.
// (2) Weights have one value for each number of matches: rows are sorted by it, a column's z become bits, and a pair of
// columns is counted by the bits that both have, 64 rows at a time. Counts are whole numbers, exact in any order.
// (3) Cells are stored column by column, so that comparisons take as many rows at once as a register holds.
//
// Every explained row is computed by itself and its rows are added up in one order: results are the same to the last bit
// whatever else is computed. pool_avx2.cpp is this file once more, compiled for processors with AVX2.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "bits.h"

namespace limes {

// Cells (columns, rows), and around `count` explained rows their cells (count, columns) and weights (count, columns + 1).
template <typename Cell>
struct PoolRows {
  std::size_t rows, columns, count;
  const Cell *cells, *instances;
  const double* weights;
};

// Values (rows, size), and sums (count, parts, 1 + columns, size).
struct ValueSums {
  std::size_t size, parts;
  const double* values;
  double* sums;
};

// gram (count, parts, 1 + columns, 1 + columns), squares and numbers (count, 1 + columns).
struct GramSums {
  std::size_t parts;
  double *gram, *squares, *numbers;
};

// Values that are looked up at each row: what is left to fit, two surrogates, leverage and influence.
constexpr std::size_t kFitted = 5;
// Powers that are summed over cells, and sums over all rows: see `Errors`.
constexpr std::size_t kPowers = 7, kTotals = 10, kSides = 4;

struct ErrorSums {
  std::size_t outputs, parts, sequences;
  bool separate;                                 // whether each coefficient is fitted by itself
  const double *answers, *residuals;             // (rows, outputs)
  const std::uint8_t* differs;                   // (rows, outputs): the answer is not the usual one
  const double *rounding, *negligible;           // (outputs,)
  const double* coef;                            // (count, outputs, parts, 1 + columns, kFitted)
  const double* center;                          // (count, outputs)
  double *powers, *moved, *totals, *sides;       // (count, outputs, 1 + columns, kPowers), (count, outputs, sequences,
};                                               // 2 + columns), (count, outputs, kTotals), (count, kSides)

template <typename Cell>
struct PoolLoops {
  void (*sums)(const PoolRows<Cell>&, const ValueSums&);
  void (*gram)(const PoolRows<Cell>&, const GramSums&);
  void (*errors)(const PoolRows<Cell>&, const ErrorSums&);
};

template <typename Cell>
PoolLoops<Cell> portable_pool();
template <typename Cell>
PoolLoops<Cell> avx2_pool();

namespace {

constexpr std::size_t kColumns = 6, kCodes = 1 << kColumns, kRun = 1024, kWord = 64;
// Numbers that a row adds to a sum at once.
constexpr std::size_t kWide = 8;

// Codes (groups of columns, rows), and numbers of matches (rows,).
template <typename Cell>
class Marks {
 public:
  Marks(const PoolRows<Cell>& pool, std::size_t capacity)
      : pool_(pool),
        capacity_(capacity),
        groups_((pool.columns + 1 + kColumns - 1) / kColumns),
        codes_(groups_ * capacity),
        kept_(capacity) {}

  std::size_t groups() const { return groups_; }
  const std::uint8_t* codes(std::size_t group) const { return &codes_[group * capacity_]; }
  std::size_t kept(std::size_t i) const { return kept_[i]; }

  // Rows from `first` on, at places from `place` on.
  void mark(const Cell* instance, std::size_t first, std::size_t count, std::size_t place = 0) {
    for (std::size_t start = 0; start < count; start += kRun) {
      mark_run(instance, first + start, std::min(kRun, count - start), place + start);
    }
  }

 private:
  void mark_run(const Cell* instance, std::size_t first, std::size_t count, std::size_t place) {
    std::uint8_t matches[kRun];
    std::uint32_t* kept = &kept_[place];
    std::fill(kept, kept + count, 0u);
    for (std::size_t group = 0; group < groups_; ++group) {
      std::uint8_t* code = &codes_[group * capacity_ + place];
      std::fill(code, code + count, static_cast<std::uint8_t>(group == 0));
      std::fill(matches, matches + count, static_cast<std::uint8_t>(0));
      const std::size_t from = group * kColumns, to = std::min(from + kColumns, pool_.columns + 1);
      for (std::size_t column = std::max<std::size_t>(from, 1); column < to; ++column) {
        const Cell *cells = pool_.cells + (column - 1) * pool_.rows + first, own = instance[column - 1];
        const auto bit = static_cast<std::uint8_t>(1u << (column - from));
        for (std::size_t i = 0; i < count; ++i) {
          const std::uint8_t same = cells[i] == own;
          code[i] = static_cast<std::uint8_t>(code[i] | (same ? bit : 0));
          matches[i] = static_cast<std::uint8_t>(matches[i] + same);
        }
      }
      for (std::size_t i = 0; i < count; ++i) kept[i] += matches[i];
    }
  }

  const PoolRows<Cell>& pool_;
  std::size_t capacity_, groups_;
  std::vector<std::uint8_t> codes_;
  std::vector<std::uint32_t> kept_;
};

// Sums of Q numbers a row over the rows of each code of each group.
template <std::size_t Q>
class CodeSums {
 public:
  explicit CodeSums(std::size_t groups) : groups_(groups), sums_(groups * kCodes * Q) {}

  void clear() { std::fill(sums_.begin(), sums_.end(), 0.0); }

  template <typename Cell>
  void add(const Marks<Cell>& marks, std::size_t i, const double* numbers) {
    for (std::size_t group = 0; group < groups_; ++group) {
      double* sum = &sums_[(group * kCodes + marks.codes(group)[i]) * Q];
      for (std::size_t q = 0; q < Q; ++q) sum[q] += numbers[q];
    }
  }

  // The sums over the rows of one column.
  void of_column(std::size_t column, double* total) const {
    const std::size_t group = column / kColumns, bit = column % kColumns;
    std::fill(total, total + Q, 0.0);
    for (std::size_t code = 0; code < kCodes; ++code) {
      if (code >> bit & 1) {
        for (std::size_t q = 0; q < Q; ++q) total[q] += sums_[(group * kCodes + code) * Q + q];
      }
    }
  }

 private:
  std::size_t groups_;
  std::vector<double> sums_;
};

// Q of the values, from `first` on.
template <std::size_t Q, typename Cell>
void sum_values(const PoolRows<Cell>& pool, const ValueSums& out, std::size_t first) {
  const std::size_t each = pool.rows / out.parts, columns = pool.columns + 1;
  Marks<Cell> marks(pool, kRun);
  CodeSums<Q> sums(marks.groups());
  for (std::size_t n = 0; n < pool.count; ++n) {
    const double* weights = pool.weights + n * columns;
    for (std::size_t part = 0; part < out.parts; ++part) {
      sums.clear();
      for (std::size_t start = part * each; start < (part + 1) * each; start += kRun) {
        const std::size_t count = std::min(kRun, (part + 1) * each - start);
        marks.mark(pool.instances + n * pool.columns, start, count);
        for (std::size_t i = 0; i < count; ++i) {
          const double weight = weights[marks.kept(i)], *values = out.values + (start + i) * out.size + first;
          double numbers[Q];
          for (std::size_t q = 0; q < Q; ++q) numbers[q] = weight * values[q];
          sums.add(marks, i, numbers);
        }
      }
      for (std::size_t column = 0; column < columns; ++column) {
        sums.of_column(column, out.sums + ((n * out.parts + part) * columns + column) * out.size + first);
      }
    }
  }
}

template <typename Cell>
void sum_all(const PoolRows<Cell>& pool, const ValueSums& out) {
  std::size_t first = 0;
  for (; first + 4 <= out.size; first += 4) sum_values<4>(pool, out, first);
  if (first + 2 <= out.size) {
    sum_values<2>(pool, out, first);
    first += 2;
  }
  if (first < out.size) sum_values<1>(pool, out, first);
}

// One bit of each of 64 bytes, in an order that is the same for every bit.
inline std::uint64_t bits_of(const std::uint8_t* bytes, std::size_t bit) {
#if defined(__AVX2__)
  const int up = static_cast<int>(7 - bit);
  std::uint64_t word = 0;
  for (int half = 0; half < 2; ++half) {
    const __m256i some = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + 32 * half));
    const auto mask = static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_slli_epi16(some, up)));
    word |= static_cast<std::uint64_t>(mask) << (32 * half);
  }
  return word;
#else
  std::uint64_t word = 0;
  for (std::size_t eighth = 0; eighth < 8; ++eighth) {
    std::uint64_t some;
    std::memcpy(&some, bytes + 8 * eighth, 8);
    word |= ((some >> bit & 0x0101010101010101u) * 0x0102040810204080u) >> 56 << (8 * eighth);
  }
  return word;
#endif
}

template <typename Cell>
class Gram {
 public:
  Gram(const PoolRows<Cell>& pool, const GramSums& out)
      : pool_(pool), out_(out), each_(pool.rows / out.parts), columns_(pool.columns + 1), marks_(pool, each_) {}

  void add(std::size_t n) {
    double *squares = out_.squares + n * columns_, *numbers = out_.numbers + n * columns_;
    std::fill(squares, squares + columns_, 0.0);
    std::fill(numbers, numbers + columns_, 0.0);
    for (std::size_t part = 0; part < out_.parts; ++part) {
      marks_.mark(pool_.instances + n * pool_.columns, part * each_, each_);
      sort();
      double* gram = out_.gram + (n * out_.parts + part) * columns_ * columns_;
      const double* weights = pool_.weights + n * columns_;
      for (std::size_t a = 0; a < columns_; ++a) {
        for (std::size_t b = 0; b <= a; ++b) {
          double total = 0.0, square = 0.0, number = 0.0;
          for (std::size_t kept = 0; kept < columns_; ++kept) {
            const auto count = static_cast<double>(common(a, b, kept));
            total += weights[kept] * count;
            square += weights[kept] * weights[kept] * count;
            number += count;
          }
          gram[a * columns_ + b] = gram[b * columns_ + a] = total;
          if (a == b) {
            squares[a] += square;
            numbers[a] += number;
          }
        }
      }
    }
  }

 private:
  // Rows that have the columns a and b, and `kept` matches.
  std::size_t common(std::size_t a, std::size_t b, std::size_t kept) const {
    const std::uint64_t *one = &bits_[a * words_], *other = &bits_[b * words_];
    std::size_t count = 0;
    for (std::size_t word = starts_[kept]; word < starts_[kept + 1]; ++word) count += count_bits(one[word] & other[word]);
    return count;
  }

  // Sort codes by numbers of matches, each number from a new word on, and split them into bits.
  void sort() {
    starts_.assign(columns_ + 1, 0);
    for (std::size_t i = 0; i < each_; ++i) ++starts_[marks_.kept(i) + 1];
    for (std::size_t kept = 0; kept < columns_; ++kept) {
      starts_[kept + 1] = starts_[kept] + (starts_[kept + 1] + kWord - 1) / kWord;
    }
    words_ = starts_[columns_];
    next_.resize(columns_);
    for (std::size_t kept = 0; kept < columns_; ++kept) next_[kept] = starts_[kept] * kWord;
    place_.resize(each_);
    for (std::size_t i = 0; i < each_; ++i) place_[i] = static_cast<std::uint32_t>(next_[marks_.kept(i)]++);
    bits_.resize(columns_ * words_);
    for (std::size_t group = 0; group < marks_.groups(); ++group) {
      sorted_.assign(words_ * kWord, 0);
      const std::uint8_t* codes = marks_.codes(group);
      for (std::size_t i = 0; i < each_; ++i) sorted_[place_[i]] = codes[i];
      const std::size_t first = group * kColumns, last = std::min(first + kColumns, columns_);
      for (std::size_t column = first; column < last; ++column) {
        std::uint64_t* bits = &bits_[column * words_];
        for (std::size_t word = 0; word < words_; ++word) bits[word] = bits_of(&sorted_[word * kWord], column - first);
      }
    }
  }

  const PoolRows<Cell>& pool_;
  const GramSums& out_;
  std::size_t each_, columns_, words_ = 0;
  Marks<Cell> marks_;
  std::vector<std::size_t> starts_, next_;
  std::vector<std::uint32_t> place_;
  std::vector<std::uint8_t> sorted_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace
}  // namespace limes
