// The pass of forest_pairs.h, four nodes at a time.

#include "forest_pairs.h"

namespace limes {

#if defined(__AVX2__)
AddPairs avx2_pairs(std::size_t nodes) { return pairs_of(nodes); }
#else
AddPairs avx2_pairs(std::size_t) { return nullptr; }
#endif

}  // namespace limes
