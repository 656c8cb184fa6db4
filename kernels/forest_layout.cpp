// A forest laid out for one pass over its splits.
//
// Edge e leads down to a node; `column` is the column of the split above it (-1 at roots) and `same` the last edge
// above on the same column. On the way down x_j lies in the interval (threshold[lower], threshold[upper]] of ranks.
//
// Below split s, for variant v of its column:
//     ratio  = E[1(x in interval of the edge)] / the same of edge `same`
//     change = Cov(h, 1(.)) / (Var h E 1(.)) - the same of edge `same`
// The probability of a leaf is the product of the ratios above it, and its contrast in column j is that probability
// times the sum of column j's changes above it.

#include <algorithm>
#include <vector>

#include "arrays.h"
#include "kernels.h"

namespace limes {
namespace {

struct Pending {
  std::int64_t node, above, depth;
  bool is_left;
};

// Nodes of all trees in depth-first order: node, parent's position, depth, column of the edge above, whether that
// edge goes left, and the last edge above on the same column, all (N,); -1 stands for none.
std::int64_t preorder(Integers feature, Integers left, Integers right, Integers roots, Array<std::int64_t, 2> edges,
                      Array<bool, 1> is_left) {
  const std::int64_t count = static_cast<std::int64_t>(feature.size());
  require(left.size() == feature.size() && right.size() == feature.size(), "left and right must be as long as feature");
  require(edges.shape(0) == 5 && edges.shape(1) == feature.size(), "edges must be (5, nodes)");
  require(is_left.size() == feature.size(), "is_left must be (nodes,)");
  const auto child_of = [&](const Integers& children, std::int64_t node) {
    const std::int64_t child = children(static_cast<std::size_t>(node));
    require(0 <= child && child < count, "a child is no node");
    return child;
  };
  std::int64_t at = 0;
  std::vector<Pending> stack;
  for (std::size_t t = 0; t < roots.size(); ++t) {
    require(0 <= roots(t) && roots(t) < count, "a root is no node");
    stack.push_back({roots(t), -1, 0, false});
    while (!stack.empty()) {
      const Pending next = stack.back();
      stack.pop_back();
      require(at < count, "a node has two parents");
      const auto e = static_cast<std::size_t>(at);
      const std::int64_t above_node = next.above < 0 ? -1 : edges(0, static_cast<std::size_t>(next.above));
      const std::int64_t column = above_node < 0 ? -1 : feature(static_cast<std::size_t>(above_node));
      std::int64_t same = next.above;
      while (same >= 0 && edges(3, static_cast<std::size_t>(same)) != column) {
        same = edges(1, static_cast<std::size_t>(same));
      }
      edges(0, e) = next.node;
      edges(1, e) = next.above;
      edges(2, e) = next.depth;
      edges(3, e) = column;
      edges(4, e) = same;
      is_left(e) = next.is_left;
      if (feature(static_cast<std::size_t>(next.node)) >= 0) {
        stack.push_back({child_of(right, next.node), at, next.depth + 1, false});
        stack.push_back({child_of(left, next.node), at, next.depth + 1, true});
      }
      ++at;
    }
  }
  return at;
}

// The interval of x[column] that reaches each edge, as ranks of thresholds, and whether a missing value does.
// `rank` and `missing_left` are those of the split above; `whole[j]` is the rank of +inf in column j.
void intervals(Integers column, Integers same, Flags is_left, Integers rank, Flags missing_left, Integers whole,
               Array<std::int64_t, 2> bounds, Array<bool, 1> missing) {
  const std::size_t count = column.size();
  require(same.size() == count && is_left.size() == count && rank.size() == count && missing_left.size() == count &&
              missing.size() == count,
          "edges must have one length");
  require(bounds.shape(0) == 2 && bounds.shape(1) == count, "bounds must be (2, edges)");
  for (std::size_t e = 0; e < count; ++e) {
    bounds(0, e) = bounds(1, e) = 0;
    missing(e) = true;
    if (column(e) < 0) continue;
    require(column(e) < static_cast<std::int64_t>(whole.size()), "a column is out of range");
    require(same(e) < static_cast<std::int64_t>(e), "edges must come after those above them");
    std::int64_t low = 0, high = whole(static_cast<std::size_t>(column(e)));
    bool may_miss = true;
    if (same(e) >= 0) {
      const auto last = static_cast<std::size_t>(same(e));
      low = bounds(0, last);
      high = bounds(1, last);
      may_miss = missing(last);
    }
    if (is_left(e)) {
      high = std::min(high, rank(e));
    } else {
      low = std::max(low, rank(e));
    }
    bounds(0, e) = low;
    bounds(1, e) = std::max(low, high);
    missing(e) = may_miss && missing_left(e) == is_left(e);
  }
}

// Ratios and changes of the two edges below every split, (S, 4, W): ratio left, ratio right, change left, change
// right, for each of V <= W variants of its column. `functionals[start[j] + rank, v]` holds two linear functionals of
// 1[x <= threshold of that rank], the last one before `start[j + 1]` those of 1[x is missing]; `mixing[j, v]` (2, 2)
// turns them into mean and contrast. `above[e]` is the split that edge e leaves.
void tabulate(Integers column, Integers same, Integers lower, Integers upper, Flags missing, Integers above,
              Flags is_left, Array<const double, 3> functionals, Integers start, Array<const double, 4> mixing,
              TensorOut table) {
  const std::size_t count = column.size(), variants = functionals.shape(1);
  require(same.size() == count && lower.size() == count && upper.size() == count && missing.size() == count &&
              above.size() == count && is_left.size() == count,
          "edges must have one length");
  require(functionals.shape(2) == 2 && mixing.shape(1) == variants && mixing.shape(2) == 2 && mixing.shape(3) == 2,
          "functionals must be (ranks, variants, 2) and mixing (columns, variants, 2, 2)");
  require(start.size() == mixing.shape(0) + 1, "start must have an entry more than there are columns");
  require(table.shape(1) == 4 && table.shape(2) >= variants, "the table must be (splits, 4, variants or more)");
  std::vector<double> mean(count * variants, 1.0), rho(count * variants, 0.0);
  for (std::size_t e = 0; e < count; ++e) {
    if (column(e) < 0) continue;
    const auto j = static_cast<std::size_t>(column(e));
    require(j < mixing.shape(0) && static_cast<std::size_t>(above(e)) < table.shape(0), "a column or split is out of range");
    require(same(e) < static_cast<std::int64_t>(e), "edges must come after those above them");
    const std::int64_t low = start(j) + lower(e), high = start(j) + upper(e), last = start(j + 1) - 1;
    require(0 <= start(j) && start(j) <= low && low <= high && high <= last &&
                last < static_cast<std::int64_t>(functionals.shape(0)),
            "a rank is out of range");
    const std::size_t side = is_left(e) ? 0 : 1;
    const auto split = static_cast<std::size_t>(above(e));
    const double* at_low = &functionals(static_cast<std::size_t>(low), 0, 0);
    const double* at_high = &functionals(static_cast<std::size_t>(high), 0, 0);
    const double* at_missing = &functionals(static_cast<std::size_t>(last), 0, 0);
    for (std::size_t v = 0; v < variants; ++v) {
      double first = at_high[2 * v] - at_low[2 * v], second = at_high[2 * v + 1] - at_low[2 * v + 1];
      if (missing(e)) {
        first += at_missing[2 * v];
        second += at_missing[2 * v + 1];
      }
      // Probabilities are differences here, which rounding must not make negative: beside a leaf that is likelier
      // by far, the sign of a tiny one would be lost.
      first = std::max(first, 0.0);
      const double* mix = &mixing(j, v, 0, 0);
      if (mix[2] != 0.0) second = std::max(second, 0.0);  // an indicator's second functional is a probability too
      const double average = mix[0] * first + mix[1] * second;
      const double contrast = mix[2] * first + mix[3] * second;
      const double* mean_above = same(e) < 0 ? nullptr : &mean[static_cast<std::size_t>(same(e)) * variants];
      const double* rho_above = same(e) < 0 ? nullptr : &rho[static_cast<std::size_t>(same(e)) * variants];
      const double reached = mean_above == nullptr ? 1.0 : mean_above[v];
      mean[e * variants + v] = average;
      rho[e * variants + v] = average > 0.0 ? contrast / average : 0.0;
      table(split, side, v) = reached > 0.0 ? average / reached : 0.0;
      table(split, 2 + side, v) = rho[e * variants + v] - (rho_above == nullptr ? 0.0 : rho_above[v]);
    }
  }
}

}  // namespace

void add_forest_layout(nb::module_& module) {
  define(module, "preorder", &preorder);
  define(module, "intervals", &intervals);
  define(module, "tabulate", &tabulate);
}

}  // namespace limes
