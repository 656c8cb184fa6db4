// The loops of kept_products.h for processors with AVX2.

#include "kept_products.h"

namespace limes {

AddKeptProducts avx2_kept_products() {
#if defined(__AVX2__)
  return [](const KeptTask& task) { KeptProducts(task).add(); };
#else
  return nullptr;
#endif
}

}  // namespace limes
