// Any processor.

#include "forest_pairs.h"

namespace limes {

AddPairs portable_pairs(std::size_t nodes) { return pairs_of(nodes); }

}  // namespace limes
