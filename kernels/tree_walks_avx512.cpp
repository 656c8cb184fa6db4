// The loops of tree_walks.h for processors with AVX-512.

#include "tree_walks.h"

namespace limes {

AddWalks avx512_walks() {
#if defined(__AVX512F__)
  return [](const WalksTask& task) { walk_down(task); };
#else
  return nullptr;
#endif
}

}  // namespace limes
