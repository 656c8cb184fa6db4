// The loops of waves.h for processors with AVX2.

#include "waves.h"

namespace limes {

AddWaves avx2_waves() {
#if defined(__AVX2__)
  return [](const Waves& waves, const WaveSums& sums) { Subsets(waves).add(sums); };
#else
  return nullptr;
#endif
}

}  // namespace limes
