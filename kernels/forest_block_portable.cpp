// Any processor: one row at a time, looked up in memory.

#include "forest_block.h"
#include "forest_effects.h"
#include "pool_squares.h"

namespace limes {
namespace {

struct Portable {
  using Real = double;
  using Cells = std::int64_t;
  template <std::size_t W>
  using Table = const double*;
  static constexpr std::size_t kRows = 1;

  static double load(const double* at) { return *at; }
  static void store(double* at, double x) { *at = x; }
  static double all(double x) { return x; }
  static double subtract(double a, double b) { return a - b; }
  static double add(double a, double b) { return a + b; }
  static double multiply(double a, double b) { return a * b; }
  static double multiply_add(double a, double b, double c) { return a * b + c; }
  static std::int64_t encode(std::uint32_t cell) { return cell; }
  static std::int64_t load_cells(const std::int64_t* at) { return *at; }
  template <std::size_t W>
  static const double* load_table(const double* at) {
    return at;
  }
  template <std::size_t W>
  static double look_up(const double* table, std::int64_t cell) {
    return table[cell];
  }
};

}  // namespace

// tables of any width are looked up in memory: one function serves them all, and is compiled once
ExplainRows portable_rows(std::size_t) { return &explain_rows<Portable, 0>; }
EffectsOfRows portable_effects(std::size_t) { return &effects_of_rows<Portable, 0>; }
PoolSquares portable_squares(std::size_t) { return &pool_squares<Portable, 0>; }

}  // namespace limes
