// The exact moments of a forest at one row: E_w f (k,) and the contrasts (d, k).
//
// Going down, probability[s] = probability[parent] * ratio of the edge. A leaf of value a below split s adds
// a * probability to the mean, and that times `change` to the contrast of the split's column. Going up, a finished
// subtree hands the sum of its leaves to the column of the edge above it.

#include <vector>

#include "arrays.h"
#include "kernels.h"
#include "splits.h"

namespace limes {
namespace {

// What a row meets below a split: probabilities to reach its children, and their changes. A tree of these fits the
// nearest cache, where its table does not.
struct Below {
  double probability[2], change[2];
};

// A tree goes down and up before the next one begins, and no step depends on which child is a leaf. Outputs are
// `kOutputs`, or as many as the splits say where that is 0.
template <std::size_t kOutputs>
void walk(const Splits& splits, const double* table, std::size_t width, const std::uint32_t* cells,
          std::size_t first_tree, std::size_t last_tree, double* mean, double* contrast) {
  const std::size_t outputs = kOutputs > 0 ? kOutputs : splits.outputs;
  std::vector<Below> below(splits.largest);
  std::vector<double> total(splits.largest * outputs);
  const std::uint32_t *columns = splits.column.data(), *parents = splits.parent.data();
  const std::uint8_t* sides = splits.side.data();
  for (std::size_t t = first_tree; t < last_tree; ++t) {
    const std::size_t first = splits.starts[t], last = splits.starts[t + 1];
    for (std::size_t s = first; s < last; ++s) {
      // what the split does to this row is `width` apart
      const double *row = table + s * 4 * width + cells[columns[s]], *values = splits.leaves.data() + 2 * s * outputs;
      const double p = s > first ? below[parents[s] - first].probability[sides[s]] : 1.0;
      Below& here = below[s - first];
      here = {{p * row[0], p * row[width]}, {row[2 * width], row[3 * width]}};
      double *sums = &total[(s - first) * outputs], *effects = contrast + columns[s] * outputs;
      for (std::size_t k = 0; k < outputs; ++k) {
        const double left = here.probability[0] * values[k], right = here.probability[1] * values[outputs + k];
        sums[k] = left + right;
        effects[k] += left * here.change[0] + right * here.change[1];
      }
    }
    for (std::size_t s = last - 1; s > first; --s) {
      const std::size_t above = parents[s];
      const double change = below[above - first].change[sides[s]];
      double *effects = contrast + columns[above] * outputs, *upper = &total[(above - first) * outputs];
      for (std::size_t k = 0; k < outputs; ++k) {
        const double sum = total[(s - first) * outputs + k];
        upper[k] += sum;
        effects[k] += sum * change;
      }
    }
    for (std::size_t k = 0; k < outputs; ++k) mean[k] += total[k];
  }
}

// Trees `first` to `last` - 1.
void explain_row(const Splits& splits, Array<const double, 3> table, Places cells, std::size_t first, std::size_t last,
                 VectorOut mean, MatrixOut contrast) {
  const std::size_t width = table.shape(2);
  require(table.shape(0) == splits.count() && table.shape(1) == 4, "the table must be (splits, 4, cells)");
  require(cells.size() == splits.columns, "cells must have an entry for each column");
  require(mean.size() == splits.outputs && contrast.shape(0) == splits.columns && contrast.shape(1) == splits.outputs,
          "mean must be (outputs,) and contrast (columns, outputs)");
  require(first <= last && last <= splits.trees(), "there are no such trees");
  for (std::size_t j = 0; j < cells.size(); ++j) require(cells(j) < width, "a cell is out of range");
  const auto explain = splits.outputs == 1 ? &walk<1> : &walk<0>;
  explain(splits, table.data(), width, cells.data(), first, last, mean.data(), contrast.data());
}

}  // namespace

void add_forest_row(nb::module_& module) { define(module, "explain_row", &explain_row); }

}  // namespace limes
