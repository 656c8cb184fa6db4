// The exact moments of a forest at one row: E_w f (k,) and the contrasts (d, k).
//
// Going down, probability[s] = probability[parent] * ratio of the edge. A leaf of value a below split s adds
// a * probability to the mean, and that times `change` to the contrast of the split's column. Going up, a finished
// subtree hands the sum of its leaves to the column of the edge above it.

#include <algorithm>
#include <vector>

#include "arrays.h"
#include "kernels.h"

namespace limes {
namespace {

// The trees whose first splits, and the end of the last one, are `starts`; splits are depth first. A tree goes down
// and up before the next one begins, so that the way up finds it in the nearest cache; and no step depends on which
// child is a leaf.
void explain_row(Places column, Places parent, Places side, Array<const double, 3> leaves,
                 Array<const double, 3> table, Places cells, Array<const std::uint64_t, 1> starts, VectorOut mean,
                 MatrixOut contrast) {
  const std::size_t splits = column.size(), outputs = leaves.shape(2), width = table.shape(2);
  require(parent.size() == splits && side.size() == splits && leaves.shape(0) == splits && leaves.shape(1) == 2 &&
              table.shape(0) == splits && table.shape(1) == 4,
          "splits must have one length");
  require(mean.size() == outputs && contrast.shape(0) == cells.size() && contrast.shape(1) == outputs,
          "mean must be (outputs,) and contrast (columns, outputs)");
  for (std::size_t j = 0; j < cells.size(); ++j) require(cells(j) < width, "a cell is out of range");
  std::size_t largest = 0;
  for (std::size_t t = 0; t + 1 < starts.size(); ++t) {
    const std::size_t first = starts(t), last = starts(t + 1);
    require(first < last && last <= splits, "starts must ascend within the splits");
    largest = std::max(largest, last - first);
    for (std::size_t s = first; s < last; ++s) {
      require(column.data()[s] < cells.size() && side.data()[s] < 2, "a split's column is out of range");
      require(s == first || (first <= parent.data()[s] && parent.data()[s] < s), "a parent must come before its child");
    }
  }
  std::vector<double> probability(largest), total(largest * outputs);
  const std::uint32_t *columns = column.data(), *parents = parent.data(), *sides = side.data(), *at = cells.data();
  // what split s does to this row is at `from(s)`, and `width` apart
  const auto from = [&](std::size_t s) { return table.data() + s * 4 * width + at[columns[s]]; };
  for (std::size_t t = 0; t + 1 < starts.size(); ++t) {
    const std::size_t first = starts(t), last = starts(t + 1);
    for (std::size_t s = first; s < last; ++s) {
      const double *row = from(s), *values = leaves.data() + 2 * s * outputs;
      double p = 1.0;
      if (s > first) p = probability[parents[s] - first] * from(parents[s])[sides[s] * width];
      probability[s - first] = p;
      double *sums = &total[(s - first) * outputs], *effects = contrast.data() + columns[s] * outputs;
      for (std::size_t k = 0; k < outputs; ++k) {
        const double left = p * row[0] * values[k], right = p * row[width] * values[outputs + k];
        sums[k] = left + right;
        effects[k] += left * row[2 * width] + right * row[3 * width];
      }
    }
    for (std::size_t s = last - 1; s > first; --s) {
      const std::size_t above = parents[s];
      const double change = from(above)[(2 + sides[s]) * width];
      double *effects = contrast.data() + columns[above] * outputs, *upper = &total[(above - first) * outputs];
      for (std::size_t k = 0; k < outputs; ++k) {
        const double sum = total[(s - first) * outputs + k];
        upper[k] += sum;
        effects[k] += sum * change;
      }
    }
    for (std::size_t k = 0; k < outputs; ++k) mean(k) += total[k];
  }
}

}  // namespace

void add_forest_row(nb::module_& module) { define(module, "explain_row", &explain_row); }

}  // namespace limes
