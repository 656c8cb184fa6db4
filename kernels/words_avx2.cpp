// The loops of words.h for processors with AVX2.

#include "words.h"

namespace limes {

AddNode avx2_node() {
#if defined(__AVX2__)
  return [](const Text& text, const TextSums& sums) { Node(text).add(sums); };
#else
  return nullptr;
#endif
}

}  // namespace limes
