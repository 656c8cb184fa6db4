// The loops of pool.h and pool_errors.h for processors with AVX2.

#include "pool_errors.h"

namespace limes {

template <>
PoolLoops<std::uint8_t> avx2_pool() {
#if defined(__AVX2__)
  return pool_loops<std::uint8_t>();
#else
  return {};
#endif
}

template <>
PoolLoops<std::uint32_t> avx2_pool() {
#if defined(__AVX2__)
  return pool_loops<std::uint32_t>();
#else
  return {};
#endif
}

}  // namespace limes
