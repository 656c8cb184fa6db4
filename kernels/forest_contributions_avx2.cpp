// The passes for contributions, four nodes at a time.

#include "forest_contributions.h"
#include "forest_single_rows.h"

namespace limes {

#if defined(__AVX2__)
AddContributions avx2_contributions(std::size_t nodes) { return contributions_of(nodes); }
AddContributions avx2_single_rows(std::size_t nodes) { return single_rows_of(nodes); }
#else
AddContributions avx2_contributions(std::size_t) { return nullptr; }
AddContributions avx2_single_rows(std::size_t) { return nullptr; }
#endif

}  // namespace limes
