// The loops of subsets.h, called from Python.

#include "subsets.h"

#include "arrays.h"
#include "kernels.h"
#include "processor.h"

namespace limes {
namespace {

// Add the sums that subsets.h defines to effects (outputs, words) and totals (outputs, 3), for sets of `kept` words
// (sets,).
void add_subsets(Matrix c, Vector a, Vector b, Vector base, Integers member, Integers member_start, Vector excess,
                 Integers excess_start, Integers kept, Matrix weights, std::uint64_t seed, MatrixOut effects,
                 MatrixOut totals) {
  const std::size_t outputs = c.shape(0), d = c.shape(1);
  require(a.size() == d && b.size() == outputs && base.size() == outputs,
          "c must be (outputs, words), a (words,), b and base (outputs,)");
  require(weights.shape(0) == 5 && weights.shape(1) == d + 1, "weights must be (5, words + 1)");
  require(effects.shape(0) == outputs && effects.shape(1) == d && totals.shape(0) == outputs && totals.shape(1) == 3,
          "effects must be (outputs, words), totals (outputs, 3)");
  for (std::size_t i = 0; i < kept.size(); ++i) {
    require(0 <= kept(i) && static_cast<std::size_t>(kept(i)) <= d, "a set has more words than there are");
  }
  const std::size_t groups = member_start.size() - 1;
  require(member_start.size() > 0 && excess_start.size() == groups + 1, "groups must be counted alike");
  require(static_cast<std::size_t>(member_start(groups)) == member.size() &&
              static_cast<std::size_t>(excess_start(groups)) == excess.size(),
          "groups must end where their arrays do");
  for (std::size_t g = 0; g < groups; ++g) {
    const std::int64_t size = member_start(g + 1) - member_start(g);
    require(0 <= size && size < 32 && excess_start(g + 1) - excess_start(g) == std::int64_t{1} << size,
            "a group of g words has 2^g subsets");
  }
  for (std::size_t i = 0; i < member.size(); ++i) {
    require(0 <= member(i) && static_cast<std::size_t>(member(i)) < d, "a word is out of range");
  }
  static const AddSubsets add = has_avx2() && avx2_subsets() != nullptr ? avx2_subsets() : portable_subsets();
  add({d, outputs, groups, c.data(), a.data(), b.data(), base.data(), member.data(), member_start.data(), excess.data(),
       excess_start.data()},
      {kept.size(), kept.data(), weights.data(), seed}, effects.data(), totals.data());
}

}  // namespace

void add_subsets_to(nb::module_& module) { define(module, "add_subsets", &add_subsets); }

}  // namespace limes
