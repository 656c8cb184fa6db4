// What this processor can do, and how much of it is used.
#pragma once

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#if defined(__SSE2__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace limes {

// While it lives, results below the smallest normal number are 0: arithmetic with them is a hundred times slower, and
// such terms add nothing to a sum.
class FlushToZero {
#if defined(__SSE2__) || defined(_M_X64)
 public:
  FlushToZero() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040); }
  ~FlushToZero() { _mm_setcsr(saved_); }
  FlushToZero(const FlushToZero&) = delete;
  FlushToZero& operator=(const FlushToZero&) = delete;

 private:
  unsigned int saved_;
#endif
};

enum class Widest { portable, avx2, avx512 };

// The widest instructions to use, by LIMES_INSTRUCTIONS: on one processor every path of the kernels can then be tested.
inline Widest widest_allowed() {
  const char* name = std::getenv("LIMES_INSTRUCTIONS");
  const std::string value = name == nullptr ? "" : name;
  if (value == "portable") return Widest::portable;
  if (value == "avx2") return Widest::avx2;
  if (value == "avx512" || value.empty()) return Widest::avx512;
  throw std::invalid_argument("LIMES_INSTRUCTIONS is '" + value + "'; use portable, avx2 or avx512, or unset it");
}

#if (defined(__x86_64__) || defined(__i386__)) && (defined(__GNUC__) || defined(__clang__))
inline bool has_avx2() {
  static const bool allowed = widest_allowed() >= Widest::avx2;
  return allowed && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("popcnt");
}
inline bool has_avx512() {
  static const bool allowed = widest_allowed() >= Widest::avx512;
  return allowed && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
}
#else
inline bool has_avx2() { return false; }
inline bool has_avx512() { return false; }
#endif

// Of functions for three sets of instructions, each null where the compiler does not know the set: the one for the widest that
// this processor has, or for the set called `only` where that is not "".
template <typename Function>
Function widest(const char* only, Function avx512, Function avx2, Function portable) {
  const auto chosen = [&](const char* name, Function function, bool is_here) {
    return is_here && function != nullptr && (*only == 0 || std::strcmp(only, name) == 0);
  };
  if (chosen("avx512", avx512, has_avx512())) return avx512;
  if (chosen("avx2", avx2, has_avx2())) return avx2;
  if (chosen("portable", portable, true)) return portable;
  throw std::invalid_argument("this processor does not have these instructions");
}

}  // namespace limes
