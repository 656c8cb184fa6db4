// The loops of tree_walks.h for processors with AVX2.

#include "tree_walks.h"

namespace limes {

AddWalks avx2_walks() {
#if defined(__AVX2__)
  return [](const WalksTask& task) { walk_down(task); };
#else
  return nullptr;
#endif
}

}  // namespace limes
