// Any processor.

#include "waves.h"

namespace limes {

AddWaves portable_waves() {
  return [](const Waves& waves, const WaveSums& sums) { Subsets(waves).add(sums); };
}

}  // namespace limes
