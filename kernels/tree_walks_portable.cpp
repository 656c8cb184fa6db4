// The loops of tree_walks.h for any processor.

#include "tree_walks.h"

namespace limes {

AddWalks portable_walks() {
  return [](const WalksTask& task) { walk_down(task); };
}

}  // namespace limes
