// Any processor.

#include "pool_errors.h"

namespace limes {

template <>
PoolLoops<std::uint8_t> portable_pool() {
  return pool_loops<std::uint8_t>();
}

template <>
PoolLoops<std::uint32_t> portable_pool() {
  return pool_loops<std::uint32_t>();
}

}  // namespace limes
