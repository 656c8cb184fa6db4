// The loops of exponentials.h for processors with AVX2.

#include "exponentials.h"

namespace limes {

AddExponentials avx2_exponentials() {
#if defined(__AVX2__)
  return [](const ExponentialTask& task) { Exponentials(task).add(); };
#else
  return nullptr;
#endif
}

}  // namespace limes
