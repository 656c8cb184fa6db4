// Tests of columns that stand together in a group: which way values go at splits, and the probabilities of the groups' boxes.
//
// A group of columns is one column of a forest's splits, whose values are tuples. A tuple reaches the node below an edge, as
// far as its group decides, if it reached the last edge above on the same group and passes the split's test. So the number of
// background rows in an edge's box is counted on the way down, and no box is listed.

#include <cmath>
#include <cstdint>
#include <vector>

#include "arrays.h"
#include "intervals.h"
#include "kernels.h"
#include "splits.h"
#include "trees.h"

namespace limes {
namespace {

// Tests of nodes, in an order in which they are read.
class Tests {
 public:
  Tests(const Trees& trees, Integers nodes) : columns_(trees.columns()), codes_(trees.codes()) {
    for (std::size_t m = 0; m < nodes.size(); ++m) {
      require(0 <= nodes(m) && static_cast<std::size_t>(nodes(m)) < trees.size(), "there is no such node");
      const auto node = static_cast<std::size_t>(nodes(m));
      require(trees.is_split(node), "a node is no split");
      Test test{trees.threshold(node), static_cast<std::uint32_t>(trees.column(node)), trees.missing_left(node), kNone};
      if (trees.is_by_set(node)) {
        test.set = sets_.size();
        for (std::size_t code = 0; code < codes_; ++code) sets_.push_back(trees.in_set(node, code));
      }
      tests_.push_back(test);
    }
  }

  std::size_t size() const { return tests_.size(); }
  std::size_t columns() const { return columns_; }

  bool goes_left(std::size_t m, const double* x) const {
    const Test& test = tests_[m];
    const double its = x[test.column];
    if (test.set != kNone) return is_in_set(test, its);
    return (its <= test.threshold) | (test.missing_left & std::isnan(its));
  }

  // Set flags (n,) to `yes` where rows x, given column by column (columns, n), go left at test m, and else to 0.
  template <typename Flag>
  void write(std::size_t m, const double* x, std::size_t n, Flag yes, Flag* flags) const {
    const Test& test = tests_[m];
    const double *its = x + test.column * n, threshold = test.threshold;
    if (test.set != kNone) {
      for (std::size_t i = 0; i < n; ++i) flags[i] = is_in_set(test, its[i]) ? yes : Flag{0};
    } else if (test.missing_left) {  // a missing value is on no side of a threshold
      for (std::size_t i = 0; i < n; ++i) flags[i] = !(its[i] > threshold) ? yes : Flag{0};
    } else {
      for (std::size_t i = 0; i < n; ++i) flags[i] = its[i] <= threshold ? yes : Flag{0};
    }
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Test {
    double threshold;
    std::uint32_t column;
    bool missing_left;
    std::size_t set;
  };

  bool is_in_set(const Test& test, double x) const {
    if (std::isnan(x)) return test.missing_left;
    const bool is_code = 0.0 <= x && x < static_cast<double>(codes_) && x == std::floor(x);
    return is_code && sets_[test.set + static_cast<std::size_t>(x)];
  }

  std::size_t columns_, codes_;
  std::vector<Test> tests_;
  std::vector<bool> sets_;
};

// Whether rows, given column by column (columns, n), go left at each test, (tests, n).
void test_rows(const Tests& tests, Matrix x, Array<bool, 2> flags) {
  const std::size_t n = x.shape(1);
  require(x.shape(0) == tests.columns(), "x must be (columns, rows)");
  require(flags.shape(0) == tests.size() && flags.shape(1) == n, "flags must be (tests, rows)");
  auto* at = reinterpret_cast<std::uint8_t*>(flags.data());
  if (n == 1) {  // no loop over rows
    for (std::size_t m = 0; m < tests.size(); ++m) at[m] = tests.goes_left(m, x.data());
    return;
  }
  for (std::size_t m = 0; m < tests.size(); ++m) tests.write(m, x.data(), n, std::uint8_t{1}, at + m * n);
}

// P(a tuple of the group is in the box of the edge) of both edges below the splits `of_group`, whose tests these are, for
// laws v: written to rows of masses (splits, 2, laws or more).
//
// Laws have the tuples x (columns, n) one law's after the other's, up to `ends`, which stand for `counts` background rows
// each. With N_v of a law's rows in the box, and N of all, `rows` (splits, 2), P = scales[v, 0] N_v + scales[v, 1] (N - N_v).
void tuple_masses(const Splits& splits, const Intervals& intervals, const Tests& tests, Integers of_group, Matrix x,
                  Places counts, Integers ends, Matrix scales, Matrix rows, TensorOut masses) {
  const std::size_t n = x.shape(1), laws = ends.size();
  require(intervals.splits.size() == splits.count(), "intervals must be those of the splits");
  require(tests.size() == of_group.size(), "a split must have a test");
  require(x.shape(0) == tests.columns() && counts.size() == n, "x must be (columns, tuples), and counts (tuples,)");
  require(laws > 0 && ends(laws - 1) == static_cast<std::int64_t>(n), "ends must cover the tuples");
  for (std::size_t v = 0; v < laws; ++v) require(ends(v) >= (v > 0 ? ends(v - 1) : 0), "ends must ascend");
  require(scales.shape(0) == laws && scales.shape(1) == 2, "scales must be (laws, 2)");
  require(rows.shape(0) == splits.count() && rows.shape(1) == 2, "rows must be (splits, 2)");
  require(masses.shape(0) == splits.count() && masses.shape(1) == 2 && masses.shape(2) >= laws,
          "masses must be (splits, 2, laws or more)");
  // of each open level and side, all bits set where a tuple reaches the edge
  std::vector<std::uint32_t> reached(splits.levels * 2 * n), all(n, ~std::uint32_t{0}), left(n);
  const std::uint32_t* count = counts.data();
  const double* scale = scales.data();
  for (std::size_t m = 0; m < of_group.size(); ++m) {
    require(0 <= of_group(m) && static_cast<std::size_t>(of_group(m)) < splits.count(), "there is no such split");
    const auto s = static_cast<std::size_t>(of_group(m));
    const std::int32_t edge = intervals.splits[s].same;
    const auto same = static_cast<std::size_t>(edge);
    const std::uint32_t* above = edge < 0 ? all.data() : &reached[(2 * splits.depth[same / 2] + same % 2) * n];
    tests.write(m, x.data(), n, ~std::uint32_t{0}, left.data());
    for (std::size_t side = 0; side < 2; ++side) {
      const std::uint32_t turned = side == 0 ? 0 : ~std::uint32_t{0};
      std::uint32_t* is_in = &reached[(2 * splits.depth[s] + side) * n];
      for (std::size_t i = 0; i < n; ++i) is_in[i] = above[i] & (left[i] ^ turned);
      const double total = rows(s, side);
      double* its = &masses(s, side, 0);
      std::size_t i = 0;
      for (std::size_t v = 0; v < laws; ++v) {
        std::uint32_t inside = 0;
        for (const auto end = static_cast<std::size_t>(ends(v)); i < end; ++i) inside += is_in[i] & count[i];
        its[v] = scale[2 * v] * inside + scale[2 * v + 1] * (total - inside);
      }
    }
  }
}

}  // namespace

void add_tuple_masses(nb::module_& module) {
  nb::class_<Tests>(module, "Tests").def(nb::init<const Trees&, Integers>(), nb::arg(), nb::arg().noconvert());
  define(module, "test_rows", &test_rows);
  define(module, "tuple_masses", &tuple_masses);
}

}  // namespace limes
