// The pass of forest_contributions.h, eight nodes at a time.

#include "forest_contributions.h"

namespace limes {

#if defined(__AVX512F__)
AddContributions avx512_contributions(std::size_t nodes) { return contributions_of(nodes); }
#else
AddContributions avx512_contributions(std::size_t) { return nullptr; }
#endif

}  // namespace limes
