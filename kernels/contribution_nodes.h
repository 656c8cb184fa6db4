// Numbers at the nodes t of the quadrature for contributions, beside each other, and what both passes are given: that for rows
// together, forest_contributions.h, and that for single ones, forest_single_rows.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "intervals.h"
#include "splits.h"

namespace limes {

struct ContributionsTask {
  const Splits& splits;
  const Intervals& intervals;
  const double* masses;          // P(x in the interval of an edge) under the law of a cell: (splits, 2, width) for rows
                                 // together, (width, splits by column, 2) for single ones
  std::size_t width;
  const std::uint32_t* cells;    // (rows, columns)
  const std::uint32_t* places;   // (rows, columns), rank of the first indicator of a threshold that is 1 at the row
  const bool* members;           // (indicators of sets, rows)
  const std::int64_t* first;     // (columns,), rank less position in `members` of a column split by sets, else -1
  std::size_t rows;
  const std::uint32_t* trees;    // (count,)
  std::size_t count;
  const double* t;               // (T, 2), t and 1 - t, neither of them 0
  const double* weights;         // (3, T): of the integral, and of either end
  double* base;                  // (rows, outputs), is added to: E_w f, with the second row of weights
  double* sums;                  // (rows, 3, columns, outputs), is added to
};

using AddContributions = void (*)(const ContributionsTask&);

namespace {

#if defined(__GNUC__)
#define LIMES_INLINE inline __attribute__((always_inline))
#else
#define LIMES_INLINE inline
#endif

// Numbers that a register holds. Wider vectors, which compilers keep in memory after each step, are split into halves.
#if defined(__AVX512F__)
constexpr std::size_t kRegister = 8;
#elif defined(__AVX2__)
constexpr std::size_t kRegister = 4;
#else
constexpr std::size_t kRegister = 2;
#endif

// T numbers beside each other.
template <std::size_t T, bool kIsRegister = T <= kRegister>
struct Nodes {
  Nodes<T / 2> low, high;
  static LIMES_INLINE Nodes load(const double* at) { return {Nodes<T / 2>::load(at), Nodes<T / 2>::load(at + T / 2)}; }
  LIMES_INLINE void store(double* at) const { low.store(at), high.store(at + T / 2); }
  static LIMES_INLINE Nodes all(double x) { return {Nodes<T / 2>::all(x), Nodes<T / 2>::all(x)}; }
  LIMES_INLINE Nodes operator+(Nodes other) const { return {low + other.low, high + other.high}; }
  LIMES_INLINE Nodes operator-(Nodes other) const { return {low - other.low, high - other.high}; }
  LIMES_INLINE Nodes operator*(Nodes other) const { return {low * other.low, high * other.high}; }
  LIMES_INLINE Nodes operator/(Nodes other) const { return {low / other.low, high / other.high}; }
};

template <std::size_t T>
struct Nodes<T, true> {
#if defined(__GNUC__)
  typedef double Vector __attribute__((vector_size(T * sizeof(double)), aligned(8), may_alias));
  Vector v;
  static LIMES_INLINE Nodes load(const double* at) { return {*reinterpret_cast<const Vector*>(at)}; }
  LIMES_INLINE void store(double* at) const { *reinterpret_cast<Vector*>(at) = v; }
  static LIMES_INLINE Nodes all(double x) { return {x - Vector{}}; }
  LIMES_INLINE Nodes operator+(Nodes other) const { return {v + other.v}; }
  LIMES_INLINE Nodes operator-(Nodes other) const { return {v - other.v}; }
  LIMES_INLINE Nodes operator*(Nodes other) const { return {v * other.v}; }
  LIMES_INLINE Nodes operator/(Nodes other) const { return {v / other.v}; }
#else
  double v[T];
  static Nodes load(const double* at) {
    Nodes x;
    std::memcpy(x.v, at, sizeof(x.v));
    return x;
  }
  void store(double* at) const { std::memcpy(at, v, sizeof(v)); }
  template <typename Operation>
  static Nodes of(Operation operation) {
    Nodes x;
    for (std::size_t k = 0; k < T; ++k) x.v[k] = operation(k);
    return x;
  }
  static Nodes all(double x) { return of([&](std::size_t) { return x; }); }
  Nodes operator+(const Nodes& other) const { return of([&](std::size_t k) { return v[k] + other.v[k]; }); }
  Nodes operator-(const Nodes& other) const { return of([&](std::size_t k) { return v[k] - other.v[k]; }); }
  Nodes operator*(const Nodes& other) const { return of([&](std::size_t k) { return v[k] * other.v[k]; }); }
  Nodes operator/(const Nodes& other) const { return of([&](std::size_t k) { return v[k] / other.v[k]; }); }
#endif
};

// Nodes of t, 1 - t and -1 / (1 - t).
template <std::size_t T>
struct Quadrature {
  explicit Quadrature(const ContributionsTask& task) {
    double t[T], rest[T];
    for (std::size_t k = 0; k < T; ++k) t[k] = task.t[2 * k], rest[k] = task.t[2 * k + 1];
    kept = Nodes<T>::load(t), drawn = Nodes<T>::load(rest), parted = Nodes<T>::all(-1.0) / drawn;
  }
  Nodes<T> kept, drawn, parted;
};

// 1 / m of an interval that the row does not lie in; nothing reaches one without a probability.
LIMES_INLINE double inverse_of(double mass) { return mass > 0.0 ? 1.0 / mass : 0.0; }

// The integral of numbers at nodes, with row q of the weights.
template <std::size_t T>
double integral(const ContributionsTask& task, std::size_t q, const double* at) {
  double sum = 0.0;
  for (std::size_t k = 0; k < T; ++k) sum += task.weights[q * T + k] * at[k];
  return sum;
}

// Memory that begins with a cache line: a register of eight nodes would else lie on two.
template <typename Number>
struct InLines {
  using value_type = Number;
  static constexpr std::align_val_t kLine{64};
  InLines() = default;
  template <typename Other>
  InLines(const InLines<Other>&) {}
  Number* allocate(std::size_t n) { return static_cast<Number*>(::operator new(n * sizeof(Number), kLine)); }
  void deallocate(Number* at, std::size_t) { ::operator delete(at, kLine); }
  bool operator==(const InLines&) const { return true; }
  bool operator!=(const InLines&) const { return false; }
};

}  // namespace
}  // namespace limes
