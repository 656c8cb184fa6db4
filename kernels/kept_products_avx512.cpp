// The loops of kept_products.h, eight numbers at a time.

#include "kept_products.h"

namespace limes {

AddKeptProducts avx512_kept_products() {
#if defined(__AVX512F__)
  return [](const KeptTask& task) { KeptProducts(task).add(); };
#else
  return nullptr;
#endif
}

}  // namespace limes
