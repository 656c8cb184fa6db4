// The loops of subsets.h for processors with AVX2.

#include "subsets.h"

namespace limes {

AddSubsets avx2_subsets() {
#if defined(__AVX2__)
  return [](const SubsetModel& model, const SubsetDraws& draws, double* effects, double* totals) {
    SubsetEffects(model, draws).add(effects, totals);
  };
#else
  return nullptr;
#endif
}

}  // namespace limes
