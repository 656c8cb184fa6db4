// Any processor.

#include "exponentials.h"

namespace limes {

AddExponentials portable_exponentials() {
  return [](const ExponentialTask& task) { Exponentials(task).add(); };
}

}  // namespace limes
