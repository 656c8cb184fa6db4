// Numbers at the nodes t of the quadrature for contributions, beside each other, and what both passes are given: that for rows
// together, forest_contributions.h, and that for single ones, forest_single_rows.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "intervals.h"
#include "lanes.h"
#include "splits.h"

namespace limes {

struct ContributionsTask {
  const Splits& splits;
  const Intervals& intervals;
  const double* masses;          // P(x in the interval of an edge) under the law of a cell: (splits, 2, width) for rows
                                 // together, (width, splits by column, 2) for single ones
  std::size_t width;
  const std::uint32_t* cells;    // (rows, columns)
  const std::uint32_t* places;   // (rows, columns), rank of the first indicator of a threshold that is 1 at the row
  const bool* members;           // (indicators of sets, rows)
  const std::int64_t* first;     // (columns,), rank less position in `members` of a column split by sets, else -1
  std::size_t rows;
  const std::uint32_t* trees;    // (count,)
  std::size_t count;
  const double* t;               // (T, 2), t and 1 - t, neither of them 0
  const double* weights;         // (3, T): of the integral, and of either end
  double* base;                  // (rows, outputs), is added to: E_w f, with the second row of weights
  double* sums;                  // (rows, 3, columns, outputs), is added to
};

using AddContributions = void (*)(const ContributionsTask&);

namespace {

// Nodes of t, 1 - t and -1 / (1 - t).
template <std::size_t T>
struct Quadrature {
  explicit Quadrature(const ContributionsTask& task) {
    double t[T], rest[T];
    for (std::size_t k = 0; k < T; ++k) t[k] = task.t[2 * k], rest[k] = task.t[2 * k + 1];
    kept = Nodes<T>::load(t), drawn = Nodes<T>::load(rest), parted = Nodes<T>::all(-1.0) / drawn;
  }
  Nodes<T> kept, drawn, parted;
};

// 1 / m of an interval that the row does not lie in; nothing reaches one without a probability.
LIMES_INLINE double inverse_of(double mass) { return mass > 0.0 ? 1.0 / mass : 0.0; }

// The integral of numbers at nodes, with row q of the weights.
template <std::size_t T>
double integral(const ContributionsTask& task, std::size_t q, const double* at) {
  double sum = 0.0;
  for (std::size_t k = 0; k < T; ++k) sum += task.weights[q * T + k] * at[k];
  return sum;
}

}  // namespace
}  // namespace limes
