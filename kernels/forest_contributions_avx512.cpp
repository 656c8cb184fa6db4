// The passes for contributions, eight nodes at a time.

#include "forest_contributions.h"
#include "forest_single_rows.h"

namespace limes {

#if defined(__AVX512F__)
AddContributions avx512_contributions(std::size_t nodes) { return contributions_of(nodes); }
AddContributions avx512_single_rows(std::size_t nodes) { return single_rows_of(nodes); }
#else
AddContributions avx512_contributions(std::size_t) { return nullptr; }
AddContributions avx512_single_rows(std::size_t) { return nullptr; }
#endif

}  // namespace limes
