// The pass of forest_contributions.h, four nodes at a time.

#include "forest_contributions.h"

namespace limes {

#if defined(__AVX2__)
AddContributions avx2_contributions(std::size_t nodes) { return contributions_of(nodes); }
#else
AddContributions avx2_contributions(std::size_t) { return nullptr; }
#endif

}  // namespace limes
