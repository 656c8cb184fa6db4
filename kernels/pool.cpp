// Sums over the rows of a pool: of z_ij = 1[row i has the explained row's cell in column j], the only features there
// are. Rows are sparse in z, or in 1 - z where a column's own cell is the usual one: only the rarer value of each
// column is visited.
//
//     sums      sum_i z_ij v_iq            over parts of the rows
//     products  sum_j z_ij c_jq            for each row
//     gram      sum_i w_i z_ij z_ik        over parts of the rows
//
// Rows are added up one after the other, by one thread: sums are the same to the last bit on every machine.

#include <vector>

#include "arrays.h"
#include "kernels.h"

namespace limes {
namespace {

constexpr std::size_t kBits = 64;

using Words = Array<const std::uint64_t, 2>;

// Position of the lowest bit that is set.
inline std::size_t lowest(std::uint64_t word) {
#if defined(__GNUC__) || defined(__clang__)
  return static_cast<std::size_t>(__builtin_ctzll(word));
#else
  std::size_t position = 0;
  while (!(word >> position & 1)) ++position;
  return position;
#endif
}

// Call visit(j) for every bit j that is set in a row of words.
template <typename Visit>
inline void each_bit(const std::uint64_t* row, std::size_t words, Visit visit) {
  for (std::size_t word = 0; word < words; ++word)
    for (std::uint64_t rest = row[word]; rest != 0; rest &= rest - 1) visit(word * kBits + lowest(rest));
}

// Bits of the rows with cells (n, d): bit j says z_ij != usual_j. And the number of z_ij that are 1.
template <typename Cell>
void mark(Array<const Cell, 2> cells, Array<const Cell, 1> instance, Array<const std::uint8_t, 1> usual,
          Array<std::uint64_t, 2> bits, Array<std::int64_t, 1> kept) {
  const std::size_t n = cells.shape(0), d = cells.shape(1), words = bits.shape(1);
  require(instance.size() == d && usual.size() == d && bits.shape(0) == n && kept.size() == n &&
              words * kBits >= d,
          "cells must be (rows, columns)");
  std::uint64_t *out = bits.data();
  for (std::size_t i = 0; i < n; ++i) {
    const Cell* row = cells.data() + i * d;
    std::int64_t count = 0;
    for (std::size_t word = 0; word < words; ++word) {
      const std::size_t first = word * kBits, last = first + kBits < d ? first + kBits : d;
      std::uint64_t mask = 0;
      for (std::size_t j = first; j < last; ++j) {
        const std::uint64_t z = row[j] == instance.data()[j];
        count += static_cast<std::int64_t>(z);
        mask |= (z ^ usual.data()[j]) << (j - first);
      }
      out[i * words + word] = mask;
    }
    kept(i) = count;
  }
}

// Sums of values (n, q) over the rows of each bit, and over all rows, for equal parts of the rows: total
// (parts, d + 1, q), the sums over all rows last.
void bit_sums(Words bits, Matrix values, TensorOut total) {
  const std::size_t n = bits.shape(0), words = bits.shape(1), q = values.shape(1);
  const std::size_t parts = total.shape(0), d = total.shape(1) - 1;
  require(values.shape(0) == n && total.shape(1) > 0 && total.shape(2) == q && d <= words * kBits && parts > 0 &&
              n % parts == 0,
          "values must be (rows, columns), and parts equal");
  const std::size_t each = n / parts;
  for (std::size_t i = 0; i < n; ++i) {
    const double* value = values.data() + i * q;
    double* part = total.data() + (i / each) * (d + 1) * q;
    for (std::size_t c = 0; c < q; ++c) part[d * q + c] += value[c];
    each_bit(bits.data() + i * words, words, [&](std::size_t j) {
      require(j < d, "a bit is out of range");
      for (std::size_t c = 0; c < q; ++c) part[j * q + c] += value[c];
    });
  }
}

// Sums of coefficients (d, q) over the bits of each row: product (n, q).
void bit_products(Words bits, Matrix coef, MatrixOut product) {
  const std::size_t n = bits.shape(0), words = bits.shape(1), d = coef.shape(0), q = coef.shape(1);
  require(product.shape(0) == n && product.shape(1) == q && d <= words * kBits, "coefficients must be (columns, q)");
  for (std::size_t i = 0; i < n; ++i) {
    double* row = product.data() + i * q;
    each_bit(bits.data() + i * words, words, [&](std::size_t j) {
      require(j < d, "a bit is out of range");
      for (std::size_t c = 0; c < q; ++c) row[c] += coef.data()[j * q + c];
    });
  }
}

// Sums of weights (n,) over the rows that have two bits, for equal parts of the rows: gram (parts, d, d), its upper half.
void bit_gram(Words bits, Vector weights, TensorOut gram) {
  const std::size_t n = bits.shape(0), words = bits.shape(1), parts = gram.shape(0), d = gram.shape(1);
  require(weights.size() == n && gram.shape(2) == d && d <= words * kBits && parts > 0 && n % parts == 0,
          "gram must be (parts, columns, columns)");
  const std::size_t each = n / parts;
  std::vector<std::size_t> ones(words * kBits);
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t count = 0;
    each_bit(bits.data() + i * words, words, [&](std::size_t j) { ones[count++] = j; });
    require(count == 0 || ones[count - 1] < d, "a bit is out of range");
    double* part = gram.data() + (i / each) * d * d;
    const double weight = weights.data()[i];
    for (std::size_t a = 0; a < count; ++a)
      for (std::size_t b = a; b < count; ++b) part[ones[a] * d + ones[b]] += weight;
  }
}

}  // namespace

void add_pool(nb::module_& module) {
  define(module, "mark_bytes", &mark<std::uint8_t>);
  define(module, "mark_words", &mark<std::uint32_t>);
  define(module, "bit_sums", &bit_sums);
  define(module, "bit_products", &bit_products);
  define(module, "bit_gram", &bit_gram);
}

}  // namespace limes
