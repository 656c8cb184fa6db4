// Any processor.

#include "words.h"

namespace limes {

AddNode portable_node() {
  return [](const Text& text, const TextSums& sums) { Node(text).add(sums); };
}

}  // namespace limes
