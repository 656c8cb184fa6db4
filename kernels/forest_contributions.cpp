// The passes of forest_contributions.h and forest_single_rows.h, called from Python, and the probabilities that they read.

#include "forest_contributions.h"
#include "forest_single_rows.h"

#include "arrays.h"
#include "forest_arguments.h"
#include "kernels.h"
#include "processor.h"

namespace limes {
namespace {

// P(x in the interval of the edge) of both edges below every split, (splits, 2, laws or more), from the functionals
// (ranks, laws, 2) and mixing (columns, laws, 2, 2) of forest_layout.cpp; not of splits on columns that are left out.
void edge_masses(const Splits& splits, const Intervals& intervals, Array<const double, 3> functionals,
                 Array<const double, 4> mixing, Flags left_out, TensorOut masses) {
  const std::size_t laws = functionals.shape(1);
  require(intervals.splits.size() == splits.count(), "intervals must be those of the splits");
  require(functionals.shape(0) == intervals.ranks() && functionals.shape(2) == 2,
          "functionals must be (ranks, laws, 2)");
  require(mixing.shape(0) == splits.columns && mixing.shape(1) == laws && mixing.shape(2) == 2 && mixing.shape(3) == 2,
          "mixing must be (columns, laws, 2, 2)");
  require(masses.shape(0) == splits.count() && masses.shape(1) == 2 && masses.shape(2) >= laws,
          "masses must be (splits, 2, laws or more)");
  require(left_out.size() == splits.columns, "left_out must be (columns,)");
  for (std::size_t s = 0; s < splits.count(); ++s) {
    if (left_out(splits.column[s])) continue;
    const Intervals::Split& split = intervals.splits[s];
    for (std::size_t side = 0; side < 2; ++side) {
      const Intervals::Side& edge = split.sides[side];
      for (std::size_t v = 0; v < laws; ++v) {
        const double* mix = &mixing(splits.column[s], v, 0, 0);
        double mass = 0.0;
        for (std::size_t part = 0; part < 2; ++part) {
          double inside = functionals(edge.upper, v, part) - functionals(edge.lower, v, part);
          if (edge.missing) inside += functionals(split.last, v, part);
          // rounding must make no probability negative; the functionals of a slope are a mean and a contrast, which may
          if (part == 0 || mix[2] != 0.0) inside = std::max(inside, 0.0);
          mass += mix[part] * inside;
        }
        masses(s, side, v) = mass;
      }
    }
  }
}

// Add what `trees` contribute, with the pass of one of three sets of instructions; see ContributionsTask.
void add_contributions_by(AddContributions (*avx512)(std::size_t), AddContributions (*avx2)(std::size_t),
                          AddContributions (*portable)(std::size_t), const Splits& splits, const Intervals& intervals,
                          const double* masses, std::size_t width, Array<const std::uint32_t, 2> cells,
                          Array<const std::uint32_t, 2> places, Array<const bool, 2> members, Integers first, Places trees,
                          Matrix t, Matrix weights, MatrixOut base, Array<double, 4> sums, const char* only) {
  const std::size_t rows = cells.shape(0), columns = splits.columns, nodes = t.shape(0);
  require((nodes == 4 || nodes == 8) && t.shape(1) == 2 && weights.shape(0) == 3 && weights.shape(1) == nodes,
          "t must be (4 or 8, 2) and weights (3, 4 or 8)");
  require(base.shape(0) == rows && base.shape(1) == splits.outputs && sums.shape(0) == rows && sums.shape(1) == 3 &&
              sums.shape(2) == columns && sums.shape(3) == splits.outputs,
          "base must be (rows, outputs) and sums (rows, 3, columns, outputs)");
  require_rows_and_trees(splits, intervals, width, cells, places, members, first, trees);
  const AddContributions add = widest(only, avx512(nodes), avx2(nodes), portable(nodes));
  if (rows == 0 || trees.size() == 0) return;
  [[maybe_unused]] const FlushToZero flush;
  add({splits, intervals, masses, width, cells.data(), places.data(), members.data(), first.data(), rows,
       trees.data(), trees.size(), t.data(), weights.data(), base.data(), sums.data()});
}

// Add to base (rows, outputs) and sums (rows, 3, columns, outputs).
void add_contributions(const Splits& splits, const Intervals& intervals, Array<const double, 3> masses,
                       Array<const std::uint32_t, 2> cells, Array<const std::uint32_t, 2> places,
                       Array<const bool, 2> members, Integers first, Places trees, Matrix t, Matrix weights,
                       MatrixOut base, Array<double, 4> sums, const char* only) {
  require(masses.shape(0) == splits.count() && masses.shape(1) == 2, "masses must be (splits, 2, cells)");
  add_contributions_by(avx512_contributions, avx2_contributions, portable_contributions, splits, intervals, masses.data(),
                       masses.shape(2), cells, places, members, first, trees, t, weights, base, sums, only);
}

// The same for few rows. Splits are in the order of their columns, and those of a column in their own.
void add_single_rows(const Splits& splits, const Intervals& intervals, Array<const double, 3> masses,
                     Array<const std::uint32_t, 2> cells, Array<const std::uint32_t, 2> places,
                     Array<const bool, 2> members, Integers first, Places trees, Matrix t, Matrix weights,
                     MatrixOut base, Array<double, 4> sums, const char* only) {
  require(masses.shape(1) == splits.count() && masses.shape(2) == 2, "masses must be (cells, splits, 2)");
  add_contributions_by(avx512_single_rows, avx2_single_rows, portable_single_rows, splits, intervals, masses.data(),
                       masses.shape(0), cells, places, members, first, trees, t, weights, base, sums, only);
}

}  // namespace

void add_forest_contributions(nb::module_& module) {
  define(module, "edge_masses", &edge_masses);
  define(module, "add_contributions", &add_contributions);
  define(module, "add_single_rows", &add_single_rows);
}

}  // namespace limes
