// The recursions of waves.h, called from Python.

#include "waves.h"

#include "arrays.h"
#include "kernels.h"
#include "processor.h"

namespace limes {
namespace {

// Add Re sum_n weight_n E[product_n | r] to profile (d + 1,), and Re sum_n weight_n sum_r within_r E[(1 - z_j) product_n
// | r] to loss (d,), for products with factors (n, d) that are 0 where width_n words or more are kept.
void add_waves(Matrix on_real, Matrix on_imaginary, Matrix off, Integers width, Vector real, Vector imaginary,
               Vector within, VectorOut profile, VectorOut loss) {
  const std::size_t nodes = on_real.shape(0), d = on_real.shape(1);
  require(on_imaginary.shape(0) == nodes && on_imaginary.shape(1) == d && off.shape(0) == nodes && off.shape(1) == d &&
              width.size() == nodes && real.size() == nodes && imaginary.size() == nodes,
          "factors must be (nodes, words), widths and weights (nodes,)");
  require(within.size() == d + 1 && profile.size() == d + 1 && loss.size() == d,
          "strata must be words + 1, losses words");
  for (std::size_t n = 0; n < nodes; ++n) {
    require(0 < width(n) && static_cast<std::size_t>(width(n)) <= d + 1, "widths must be from 1 to words + 1");
  }
  [[maybe_unused]] const FlushToZero flush;
  static const AddWaves add = has_avx2() && avx2_waves() != nullptr ? avx2_waves() : portable_waves();
  add({nodes, d, on_real.data(), on_imaginary.data(), off.data(), width.data(), real.data(), imaginary.data(),
       within.data()},
      {profile.data(), loss.data()});
}

}  // namespace

void add_waves_to(nb::module_& module) { define(module, "add_waves", &add_waves); }

}  // namespace limes
