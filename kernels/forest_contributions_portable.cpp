// Any processor.

#include "forest_contributions.h"

namespace limes {

AddContributions portable_contributions(std::size_t nodes) { return contributions_of(nodes); }

}  // namespace limes
