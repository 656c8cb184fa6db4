// Any processor.

#include "forest_contributions.h"
#include "forest_single_rows.h"

namespace limes {

AddContributions portable_contributions(std::size_t nodes) { return contributions_of(nodes); }
AddContributions portable_single_rows(std::size_t nodes) { return single_rows_of(nodes); }

}  // namespace limes
