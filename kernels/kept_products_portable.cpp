// Any processor.

#include "kept_products.h"

namespace limes {

AddKeptProducts portable_kept_products() {
  return [](const KeptTask& task) { KeptProducts(task).add(); };
}

}  // namespace limes
