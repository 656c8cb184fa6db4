// Numbers beside each other, as registers hold them, and memory that is as wide.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>

namespace limes {
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
