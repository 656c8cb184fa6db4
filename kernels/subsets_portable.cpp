// Any processor.

#include "subsets.h"

namespace limes {

AddSubsets portable_subsets() {
  return [](const SubsetModel& model, const SubsetDraws& draws, double* effects, double* totals) {
    SubsetEffects(model, draws).add(effects, totals);
  };
}

}  // namespace limes
