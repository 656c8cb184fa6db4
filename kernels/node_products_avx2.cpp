// The loops of node_products.h for processors with AVX2.

#include "node_products.h"

namespace limes {

AddNodeProducts avx2_node_products() {
#if defined(__AVX2__)
  return [](const NodeTask& task) { NodeProducts(task).add(); };
#else
  return nullptr;
#endif
}

}  // namespace limes
