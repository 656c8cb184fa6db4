// AVX2: four rows at a time. `permutevar8x32` picks halves of doubles, so that cell v is stored as the pair of
// halves (2v, 2v + 1) of a table of four; it looks at three bits of each. Wider tables are several of four, between
// which bits 2 and 3 of the cell choose: they are kept in the two highest bits, where `blendv` looks.

#include "forest_block.h"
#include "forest_effects.h"
#include "pool_squares.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

namespace limes {
namespace {

struct Avx2 {
  using Real = __m256d;
  using Cells = __m256i;
  static constexpr std::size_t kRows = 4;
  template <std::size_t W>
  struct Table {
    __m256i quarter[W > 0 ? W / 4 : 1];
    const double* memory;
  };

  static Real load(const double* at) { return _mm256_loadu_pd(at); }
  static void store(double* at, Real x) { _mm256_storeu_pd(at, x); }
  static Real all(double x) { return _mm256_set1_pd(x); }
  static Real subtract(Real a, Real b) { return _mm256_sub_pd(a, b); }
  static Real add(Real a, Real b) { return _mm256_add_pd(a, b); }
  static Real multiply(Real a, Real b) { return _mm256_mul_pd(a, b); }
  static Real multiply_add(Real a, Real b, Real c) { return _mm256_fmadd_pd(a, b, c); }

  static std::int64_t encode(std::uint32_t cell) {
    const std::uint64_t v = cell, half = 2 * (v & 3);
    const std::uint64_t high = (v >> 2 & 1) << 63 | (v >> 3 & 1) << 62;
    // bits 8 to 31 hold the cell itself, for tables in memory
    return static_cast<std::int64_t>(high | (half + 1) << 32 | v << 8 | half);
  }
  static Cells load_cells(const std::int64_t* at) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)); }

  template <std::size_t W>
  static Table<W> load_table(const double* at) {
    Table<W> table;
    table.memory = at;
    for (std::size_t q = 0; q < W / 4; ++q) {
      table.quarter[q] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 4 * q));
    }
    return table;
  }

  template <std::size_t W>
  static Real look_up(const Table<W>& table, Cells cells) {
    if constexpr (W == 0) {
      const Cells index = _mm256_and_si256(_mm256_srli_epi64(cells, 8), _mm256_set1_epi64x(0xffffff));
      return _mm256_i64gather_pd(table.memory, index, 8);
    } else {
      const auto pick = [&](std::size_t q) {
        return _mm256_castsi256_pd(_mm256_permutevar8x32_epi32(table.quarter[q], cells));
      };
      const Real bit2 = _mm256_castsi256_pd(cells);
      if constexpr (W == 4) {
        return pick(0);
      } else if constexpr (W == 8) {
        return _mm256_blendv_pd(pick(0), pick(1), bit2);
      } else {
        const Real bit3 = _mm256_castsi256_pd(_mm256_slli_epi64(cells, 1));
        const Real low = _mm256_blendv_pd(pick(0), pick(1), bit2);
        if constexpr (W == 12) return _mm256_blendv_pd(low, pick(2), bit3);
        return _mm256_blendv_pd(low, _mm256_blendv_pd(pick(2), pick(W / 4 - 1), bit2), bit3);
      }
    }
  }
};

}  // namespace

ExplainRows avx2_rows(std::size_t width) { return rows_of_width<Avx2>(width); }
EffectsOfRows avx2_effects(std::size_t width) { return effects_of_width<Avx2>(width); }
PoolSquares avx2_squares(std::size_t width) { return squares_of_width<Avx2>(width); }

}  // namespace limes

#else

namespace limes {
ExplainRows avx2_rows(std::size_t) { return nullptr; }
EffectsOfRows avx2_effects(std::size_t) { return nullptr; }
PoolSquares avx2_squares(std::size_t) { return nullptr; }
}  // namespace limes

#endif
