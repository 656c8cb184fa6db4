// The sums of exponentials.h, called from Python.

#include "exponentials.h"

#include "arrays.h"
#include "kernels.h"
#include "processor.h"

namespace limes {
namespace {

using Sums = Array<double, 4>;

// Add sum_k w_bk e^{z_n f_k - offset_n} to sums (rows, B, 2, N), by functional b, real parts before imaginary ones. Points
// are (K,), weights (B, K) of one functional or two; start (rows + 1,) is the first point of each row, and K. Of the nodes (N, 2), real and
// imaginary parts, the first ``equidistant`` are a constant imaginary step apart and have one offset a row; the
// imaginary parts of the others are 0. Offsets are (rows, N).
void add_exponentials(Vector value, Matrix weight, Integers start, Matrix nodes, std::int64_t equidistant,
                      Matrix offsets, Sums sums) {
  const std::size_t points = value.shape(0), count = nodes.shape(0), rows = offsets.shape(0), functionals = weight.shape(0);
  require((functionals == 1 || functionals == 2) && weight.shape(1) == points && nodes.shape(1) == 2 && offsets.shape(1) == count,
          "weights must be (1 or 2, points), nodes (nodes, 2), offsets (rows, nodes)");
  require(sums.shape(0) == rows && sums.shape(1) == functionals && sums.shape(2) == 2 && sums.shape(3) == count,
          "sums must be (rows, functionals, 2, nodes)");
  require(0 <= equidistant && static_cast<std::size_t>(equidistant) <= count, "there are fewer nodes than equidistant");
  require(start.shape(0) == rows + 1 && start(0) == 0 && static_cast<std::size_t>(start(rows)) == points,
          "start must have the first point of each row, and the number of points");
  for (std::size_t i = 0; i < rows; ++i) require(start(i) <= start(i + 1), "first points must ascend");
  static const AddExponentials add =
      has_avx2() && avx2_exponentials() != nullptr ? avx2_exponentials() : portable_exponentials();
  add({rows, functionals, count, static_cast<std::size_t>(equidistant), points, value.data(), weight.data(), start.data(),
       nodes.data(), offsets.data(), sums.data()});
}

}  // namespace

void add_exponentials_to(nb::module_& module) { define(module, "add_exponentials", &add_exponentials); }

}  // namespace limes
