// The exact moments of a forest at one row: E_w f (k,) and the contrasts (d, k).
//
// Going down, probability[s] = probability[parent] * ratio of the edge. A leaf of value a below split s adds
// a * probability to the mean, and that times `change` to the contrast of the split's column. Going up, a finished
// subtree hands the sum of its leaves to the column of the edge above it.
//
// Ratios and changes are those of forest_layout.cpp. Where rows share laws they come from a table; a law of one row
// alone has them computed on the way, from two functionals of each column's thresholds.

#include <algorithm>
#include <vector>

#include "arrays.h"
#include "intervals.h"
#include "kernels.h"
#include "splits.h"

namespace limes {
namespace {

// What a row meets below a split: probabilities to reach its children, and their changes. A tree of these fits the
// nearest cache, where its table does not.
struct Below {
  double probability[2], change[2];
};

// What the edges below a split do: ratio left and right, change left and right.
struct Edges {
  double ratio[2], change[2];
};

// From a table (cells, splits by column, 4): what the splits do to this row lies apart from what they do to others.
struct FromTable {
  const Splits& splits;
  std::vector<const double*> columns;  // the part of the table for each column's cell

  Edges operator()(std::size_t s, std::size_t) const {
#if defined(__GNUC__)
    const std::size_t ahead = s + 12 < splits.count() ? s + 12 : s;
    __builtin_prefetch(columns[splits.column[ahead]] + 4 * std::size_t{splits.rank[ahead]});
#endif
    const double* edges = columns[splits.column[s]] + 4 * std::size_t{splits.rank[s]};
    return {{edges[0], edges[1]}, {edges[2], edges[3]}};
  }
};

// From functionals (ranks, 2) and how they mix to mean and contrast, (columns, 2, 2).
struct FromFunctionals {
  const Splits& splits;
  const Intervals& intervals;
  const double *functionals, *mixing;
  std::vector<double> means, rhos;  // of the tree's edges

  Edges operator()(std::size_t s, std::size_t first) {
    const Intervals::Split& split = intervals.splits[s];
    const double* mix = mixing + 4 * splits.column[s];
    const bool any = split.same >= 0;
    const std::size_t same = any ? static_cast<std::size_t>(split.same) - 2 * first : 0;
    const double reached = any ? means[same] : 1.0, rho_above = any ? rhos[same] : 0.0;
    Edges edges;
    for (std::size_t side = 0; side < 2; ++side) {
      const Intervals::Side& of = split.sides[side];
      const double *low = functionals + 2 * of.lower, *high = functionals + 2 * of.upper;
      double inside = high[0] - low[0], outside = high[1] - low[1];
      if (of.missing) {
        inside += functionals[2 * split.last];
        outside += functionals[2 * split.last + 1];
      }
      inside = std::max(inside, 0.0);
      if (mix[2] != 0.0) outside = std::max(outside, 0.0);
      const double average = mix[0] * inside + mix[1] * outside, contrast = mix[2] * inside + mix[3] * outside;
      const double rho = average > 0.0 ? contrast / average : 0.0;
      means[2 * (s - first) + side] = average;
      rhos[2 * (s - first) + side] = rho;
      edges.ratio[side] = reached > 0.0 ? average / reached : 0.0;
      edges.change[side] = rho - rho_above;
    }
    return edges;
  }
};

// A tree goes down and up before the next one begins, and no step depends on which child is a leaf. Outputs are
// `kOutputs`, or as many as the splits say where that is 0.
template <std::size_t kOutputs, typename Source>
void walk(const Splits& splits, Source& source, std::size_t first_tree, std::size_t last_tree, double* mean,
          double* contrast) {
  const std::size_t outputs = kOutputs > 0 ? kOutputs : splits.outputs;
  std::vector<Below> below(splits.largest);
  std::vector<double> total(splits.largest * outputs);
  const std::uint32_t *columns = splits.column.data(), *parents = splits.parent.data();
  const std::uint8_t* sides = splits.side.data();
  for (std::size_t t = first_tree; t < last_tree; ++t) {
    const std::size_t first = splits.starts[t], last = splits.starts[t + 1];
    for (std::size_t s = first; s < last; ++s) {
      const Edges edges = source(s, first);
      const double* values = splits.leaves.data() + 2 * s * outputs;
      const double p = s > first ? below[parents[s] - first].probability[sides[s]] : 1.0;
      Below& here = below[s - first];
      here = {{p * edges.ratio[0], p * edges.ratio[1]}, {edges.change[0], edges.change[1]}};
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

template <typename Source>
void explain(const Splits& splits, Source& source, std::size_t first, std::size_t last, VectorOut mean,
             MatrixOut contrast) {
  require(mean.size() == splits.outputs && contrast.shape(0) == splits.columns && contrast.shape(1) == splits.outputs,
          "mean must be (outputs,) and contrast (columns, outputs)");
  require(first <= last && last <= splits.trees(), "there are no such trees");
  const auto go = splits.outputs == 1 ? &walk<1, Source> : &walk<0, Source>;
  go(splits, source, first, last, mean.data(), contrast.data());
}

// Trees `first` to `last` - 1.
void explain_row(const Splits& splits, Array<const double, 3> table, Places cells, std::size_t first, std::size_t last,
                 VectorOut mean, MatrixOut contrast) {
  require(table.shape(1) == splits.count() && table.shape(2) == 4, "the table must be (cells, splits, 4)");
  require(cells.size() == splits.columns, "cells must have an entry for each column");
  FromTable source{splits, {}};
  for (std::size_t j = 0; j < cells.size(); ++j) {
    require(cells(j) < table.shape(0), "a cell is out of range");
    source.columns.push_back(table.data() + 4 * splits.count() * cells(j));
  }
  explain(splits, source, first, last, mean, contrast);
}

// The splits as single rows read them: 24 bytes each.
std::vector<Intervals::Record> records_of(const Splits& splits, const Intervals& intervals) {
  using Record = Intervals::Record;
  std::vector<Record> records(splits.count() + Intervals::kAhead);
  const auto edge_below = [&](std::size_t s, std::size_t side) { return 2 * (splits.depth[s] + 1) + static_cast<std::uint32_t>(side); };
  for (std::size_t t = 0; t < splits.trees(); ++t) {
    const std::size_t end = splits.starts[t + 1];
    for (std::size_t s = splits.starts[t]; s < end; ++s) {
      const Intervals::Split& split = intervals.splits[s];
      const auto same = static_cast<std::size_t>(split.same);
      Record& record = records[s];
      record.column = splits.column[s];
      record.upper = split.sides[0].upper;
      record.rank = splits.rank[s];
      record.edge = splits.depth[s] > 0 ? edge_below(splits.parent[s], splits.side[s]) : 0;
      record.same = split.same >= 0 ? edge_below(same / 2, same % 2) : 0;
      if (splits.has_leaf[s]) record.flags |= Record::kHasLeaf;
      if (s + 1 == end || splits.depth[s + 1] <= splits.depth[s]) record.flags |= Record::kIsLast;
      if (split.sides[0].missing) record.flags |= Record::kMissingLeft;
    }
  }
  return records;
}

// Edges as `tabulate` takes them. Those that leave a split are its two sides.
Intervals intervals_of(const Splits& splits, Integers column, Integers same, Integers lower, Integers upper,
                       Flags missing, Integers above, Flags is_left, Integers start) {
  const std::size_t count = column.size();
  require(same.size() == count && lower.size() == count && upper.size() == count && missing.size() == count &&
              above.size() == count && is_left.size() == count && start.size() == splits.columns + 1,
          "edges must have one length, and start an entry more than there are columns");
  Intervals intervals;
  intervals.splits.resize(splits.count());
  for (std::size_t j = 0; j < start.size(); ++j) {
    require(start(j) >= (j > 0 ? start(j - 1) : 0), "start must ascend");
    intervals.start.push_back(static_cast<std::size_t>(start(j)));
  }
  const auto edge_of = [&](std::int64_t e) {
    return static_cast<std::int32_t>(2 * above(static_cast<std::size_t>(e)) + (is_left(static_cast<std::size_t>(e)) ? 0 : 1));
  };
  for (std::size_t e = 0; e < count; ++e) {
    if (column(e) < 0) continue;
    const auto s = static_cast<std::size_t>(above(e));
    require(s < splits.count() && splits.column[s] == static_cast<std::size_t>(column(e)), "an edge leaves no split");
    require(same(e) < static_cast<std::int64_t>(e) && (same(e) < 0 || column(static_cast<std::size_t>(same(e))) == column(e)),
            "edges must come after those above them");
    const std::int64_t begin = start(splits.column[s]), last = start(splits.column[s] + 1) - 1;
    const std::int64_t low = begin + lower(e), high = begin + upper(e);
    require(0 <= begin && begin <= low && low <= high && high <= last && last < start(splits.columns), "a rank is out of range");
    Intervals::Split& split = intervals.splits[s];
    split.same = same(e) < 0 ? -1 : edge_of(same(e));
    split.last = static_cast<std::uint32_t>(last);
    split.sides[is_left(e) ? 0 : 1] = {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(high), missing(e)};
  }
  for (std::size_t t = 0; t < splits.trees(); ++t) {
    for (std::size_t s = splits.starts[t]; s < splits.starts[t + 1]; ++s) {
      const std::int32_t above_it = intervals.splits[s].same;
      require(above_it < 0 || (static_cast<std::size_t>(above_it) >= 2 * splits.starts[t] &&
                               static_cast<std::size_t>(above_it) < 2 * s),
              "an edge must lie below those of its own tree");
    }
  }
  intervals.records = records_of(splits, intervals);
  return intervals;
}

// The same for a law of one row alone: `functionals` and `mixing` are those of `tabulate`, of one variant.
void explain_law(const Splits& splits, const Intervals& intervals, Matrix functionals, Array<const double, 3> mixing,
                 std::size_t first, std::size_t last, VectorOut mean, MatrixOut contrast) {
  require(intervals.splits.size() == splits.count(), "intervals must be those of the splits");
  require(functionals.shape(0) == intervals.ranks() && functionals.shape(1) == 2, "functionals must be (ranks, 2)");
  require(mixing.shape(0) == splits.columns && mixing.shape(1) == 2 && mixing.shape(2) == 2,
          "mixing must be (columns, 2, 2)");
  FromFunctionals source{splits, intervals, functionals.data(), mixing.data(),
                         std::vector<double>(2 * splits.largest), std::vector<double>(2 * splits.largest)};
  explain(splits, source, first, last, mean, contrast);
}

}  // namespace

void add_forest_row(nb::module_& module) {
  nb::class_<Intervals>(module, "Intervals")
      .def("__init__",
           [](Intervals* self, const Splits& splits, Integers column, Integers same, Integers lower, Integers upper,
              Flags missing, Integers above, Flags is_left, Integers start) {
             new (self) Intervals(intervals_of(splits, column, same, lower, upper, missing, above, is_left, start));
           },
           nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
           nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
  define(module, "explain_row", &explain_row);
  define(module, "explain_law", &explain_law);
}

}  // namespace limes
