// Bits of a 64-bit word, which compilers name differently. Each file has its copies (static): the files are compiled for
// different processors, and the linker would keep one of them for all.
#pragma once

#include <cstddef>
#include <cstdint>

namespace limes {

// The position of the lowest bit of a word that is not 0.
static inline std::size_t lowest_bit(std::uint64_t word) {
#if defined(__GNUC__)
  return static_cast<std::size_t>(__builtin_ctzll(word));
#else
  std::size_t at = 0;
  while (!(word >> at & 1)) ++at;
  return at;
#endif
}

// The number of bits that are set.
static inline std::size_t count_bits(std::uint64_t word) {
#if defined(__GNUC__)
  return static_cast<std::size_t>(__builtin_popcountll(word));
#else
  std::size_t count = 0;
  for (; word != 0; word &= word - 1) ++count;
  return count;
#endif
}

}  // namespace limes
