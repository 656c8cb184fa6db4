// AVX-512: eight rows at a time; one permute looks up a table of eight, one of two registers a table of sixteen.

#include "forest_block.h"
#include "forest_effects.h"
#include "pool_squares.h"

#if defined(__AVX512F__)
#include <immintrin.h>

namespace limes {
namespace {

struct Avx512 {
  using Real = __m512d;
  using Cells = __m512i;
  static constexpr std::size_t kRows = 8;
  template <std::size_t W>
  struct Table {
    __m512d low, high;
    const double* memory;
  };

  static Real load(const double* at) { return _mm512_loadu_pd(at); }
  static void store(double* at, Real x) { _mm512_storeu_pd(at, x); }
  static Real all(double x) { return _mm512_set1_pd(x); }
  static Real subtract(Real a, Real b) { return _mm512_sub_pd(a, b); }
  static Real add(Real a, Real b) { return _mm512_add_pd(a, b); }
  static Real multiply(Real a, Real b) { return _mm512_mul_pd(a, b); }
  static Real multiply_add(Real a, Real b, Real c) { return _mm512_fmadd_pd(a, b, c); }
  static std::int64_t encode(std::uint32_t cell) { return cell; }
  static Cells load_cells(const std::int64_t* at) { return _mm512_loadu_si512(at); }

  template <std::size_t W>
  static Table<W> load_table(const double* at) {
    Table<W> table;
    table.memory = at;
    if constexpr (W == 4) table.low = _mm512_castpd256_pd512(_mm256_loadu_pd(at));
    if constexpr (W >= 8) table.low = _mm512_loadu_pd(at);
    if constexpr (W == 12) table.high = _mm512_castpd256_pd512(_mm256_loadu_pd(at + 8));
    if constexpr (W == 16) table.high = _mm512_loadu_pd(at + 8);
    return table;
  }

  template <std::size_t W>
  static Real look_up(const Table<W>& table, Cells cells) {
    if constexpr (W == 0) {
      return _mm512_i64gather_pd(cells, table.memory, 8);
    } else if constexpr (W > 8) {
      return _mm512_permutex2var_pd(table.low, cells, table.high);
    } else {
      return _mm512_permutexvar_pd(cells, table.low);
    }
  }
};

}  // namespace

ExplainRows avx512_rows(std::size_t width) { return rows_of_width<Avx512>(width); }
EffectsOfRows avx512_effects(std::size_t width) { return effects_of_width<Avx512>(width); }
PoolSquares avx512_squares(std::size_t width) { return squares_of_width<Avx512>(width); }

}  // namespace limes

#else

namespace limes {
ExplainRows avx512_rows(std::size_t) { return nullptr; }
EffectsOfRows avx512_effects(std::size_t) { return nullptr; }
PoolSquares avx512_squares(std::size_t) { return nullptr; }
}  // namespace limes

#endif
