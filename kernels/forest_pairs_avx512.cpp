// The pass of forest_pairs.h, eight nodes at a time.

#include "forest_pairs.h"

namespace limes {

#if defined(__AVX512F__)
AddPairs avx512_pairs(std::size_t nodes) { return pairs_of(nodes); }
#else
AddPairs avx512_pairs(std::size_t) { return nullptr; }
#endif

}  // namespace limes
