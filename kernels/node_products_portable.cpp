// Any processor.

#include "node_products.h"

namespace limes {

AddNodeProducts portable_node_products() {
  return [](const NodeTask& task) { NodeProducts(task).add(); };
}

}  // namespace limes
