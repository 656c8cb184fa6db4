// Products over switches, f(z) = prod_k (on_k if z_k else off_k), and their means over s switches that are off.
//
// With s of k switches off, B_k[s] = E prod. Switch k is among them with probability s/k:
//     B_k[s] = (1 - s/k) on_k B_{k-1}[s] + (s/k) off_k B_{k-1}[s-1].
// The way back, with adjoint weights, gives E[z_j f | s] for all j at the cost of one product.

#include <vector>

#include "arrays.h"
#include "kernels.h"

namespace limes {
namespace {

// Of each product (m, d): sum_s law_s E[f | s], and sum_s (every_s E[f | s] + within_s E[z_j f | s]).
void add_products(Matrix on, Matrix off, Vector law, Vector every, Vector within, VectorOut mean, MatrixOut coef) {
  const std::size_t products = on.shape(0), d = on.shape(1), width = d + 1;
  require(off.shape(0) == products && off.shape(1) == d && mean.size() == products && coef.shape(0) == products &&
              coef.shape(1) == d,
          "products must be (m, switches)");
  require(law.size() == width && every.size() == width && within.size() == width, "strata must be switches + 1");
  std::vector<double> tables(width * width, 0.0), adjoint(width), index(width);
  for (std::size_t s = 0; s < width; ++s) index[s] = static_cast<double>(s);
  for (std::size_t i = 0; i < products; ++i) {
    const double *a = on.data() + i * d, *b = off.data() + i * d;
    tables[0] = 1.0;
    for (std::size_t k = 1; k <= d; ++k) {
      const double *__restrict before = &tables[(k - 1) * width], each = 1.0 / static_cast<double>(k);
      double* __restrict after = &tables[k * width];
      after[0] = a[k - 1] * before[0];
      for (std::size_t s = 1; s < k; ++s) {
        const double share = index[s] * each;
        after[s] = (1.0 - share) * a[k - 1] * before[s] + share * b[k - 1] * before[s - 1];
      }
      after[k] = b[k - 1] * before[k - 1];
    }
    double whole = 0.0;
    for (std::size_t s = 0; s < width; ++s) {
      mean(i) += law(s) * tables[d * width + s];
      whole += every(s) * tables[d * width + s];
      adjoint[s] = within(s);
    }
    for (std::size_t k = d; k > 0; --k) {
      const double *__restrict before = &tables[(k - 1) * width], each = 1.0 / static_cast<double>(k);
      double total = 0.0;
      for (std::size_t s = 0; s < k; ++s) {
        const double stays = (1.0 - index[s] * each) * a[k - 1] * adjoint[s];
        total += stays * before[s];
        adjoint[s] = stays + index[s + 1] * each * b[k - 1] * adjoint[s + 1];
      }
      coef(i, k - 1) = total + whole;
    }
  }
}

}  // namespace

void add_switches(nb::module_& module) { define(module, "add_products", &add_products); }

}  // namespace limes
