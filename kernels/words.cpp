// The recursions of words.h, called from Python.

#include "words.h"

#include "arrays.h"
#include "kernels.h"
#include "processor.h"

namespace limes {
namespace {

// One node of g = weight (c.z) prod y, for r < width words kept. Add E[g | r] to profile (q, r), and
// sum_r within[r] E[(1 - z_j) g | r] to loss (d, q). The d words come behind others, whose state is `start`
// (1 + q, others + 1); `rest`, as large, becomes the adjoint there.
void add_node(Vector y, Matrix c, Vector within, std::size_t width, double weight, MatrixOut profile, MatrixOut loss,
              Matrix start, MatrixOut rest) {
  const std::size_t d = y.size(), outputs = c.shape(1), rows = 1 + outputs;
  require(c.shape(0) == d && start.shape(0) == rows && start.shape(1) > 0 && rest.shape(0) == rows &&
              rest.shape(1) == start.shape(1),
          "c must be (words, outputs), start and rest (1 + outputs, others + 1)");
  require(0 < width && width <= within.size() && profile.shape(0) == outputs && width <= profile.shape(1) &&
              loss.shape(0) == d && loss.shape(1) == outputs,
          "the sums must have width numbers or more");
  static const AddNode add = has_avx2() && avx2_node() != nullptr ? avx2_node() : portable_node();
  add({d, outputs, start.shape(1) - 1, width, y.data(), c.data(), within.data(), start.data(), weight},
      {profile.data(), profile.shape(1), loss.data(), rest.data()});
}

}  // namespace

void add_words(nb::module_& module) { define(module, "add_node", &add_node); }

}  // namespace limes
