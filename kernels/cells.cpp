// Cells of rows: which bin or level of its column each value lies in.

#include <algorithm>
#include <cmath>

#include "arrays.h"
#include "kernels.h"

namespace limes {
namespace {

// Column j has the ascending points of `points` from starts[j] to starts[j + 1]. They are inner edges of bins, and x lies
// in bin #{edges < x}; or levels, where is_level, and x in the cell of the level that equals x, -1 if none does. NaN lies
// in cell missing[j].
void locate(Matrix rows, Vector points, Integers starts, Flags is_level, Integers missing,
            Array<std::int64_t, 2> cells) {
  const std::size_t columns = rows.shape(1);
  require(starts.size() == columns + 1 && is_level.size() == columns && missing.size() == columns,
          "starts must have an entry more than there are columns");
  require(cells.shape(0) == rows.shape(0) && cells.shape(1) == columns, "cells must be (rows, columns)");
  require(starts(0) == 0 && starts(columns) == static_cast<std::int64_t>(points.size()), "starts must cover the points");
  for (std::size_t j = 0; j < columns; ++j) require(starts(j) <= starts(j + 1), "starts must ascend");
  for (std::size_t i = 0; i < rows.shape(0); ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      const double x = rows(i, j), *first = points.data() + starts(j), *last = points.data() + starts(j + 1);
      const double* at = std::lower_bound(first, last, x);
      const bool is_in_none = is_level(j) && (at == last || *at != x);
      cells(i, j) = std::isnan(x) ? missing(j) : is_in_none ? -1 : at - first;
    }
  }
}

}  // namespace

void add_cells(nb::module_& module) { define(module, "locate", &locate); }

}  // namespace limes
