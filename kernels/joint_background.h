// The background's part of contributions under the joint law, where all its rows have one weight: computed once, so that a
// row costs no pass over the background (joint_contributions.cpp has the formulas).
//
// A subtree with few tests in it and above it has a table: what its leaves contribute depends on the outcomes of these
// tests at the row, and the background enters by the number of its rows with each outcome. Outcomes that no value of a
// column has have no line. Tables are kept up to a number of bytes, the smallest first.
//
// To all other leaves a row walks: each has the masks of columns that background rows fail on its path, with their number,
// and each node the least of these masks. Where the row fails a column of each, nothing below says anything about it.
#pragma once

#include <cstdint>
#include <vector>

#include "arrays.h"
#include "bits.h"
#include "huge_pages.h"
#include "trees.h"

namespace limes {

// A test, and those before it: `above` is the position of the last one above it, 0 at the root; `node` decides about
// missing values and categories.
struct JointTest {
  double threshold;
  std::uint32_t column, node, above;
};

struct JointTable {
  std::uint32_t above, first_test, tests, first_column, columns;
  std::size_t first_outcome, first_line;
};

// Background rows that fail the same columns of a path: these, with their number in the highest bits, and how many rows.
struct JointMask {
  static constexpr std::uint32_t kColumns = 27;
  JointMask(std::uint32_t failed, std::uint32_t rows)
      : word(failed | static_cast<std::uint32_t>(count_bits(failed)) << kColumns), rows(rows) {}
  std::uint32_t failed() const { return word & ((std::uint32_t{1} << kColumns) - 1); }
  std::uint32_t number() const { return word >> kColumns; }
  std::uint32_t word, rows;
};

struct JointNode {
  double threshold;
  std::uint32_t node, column, right;
  std::uint32_t first, end;  // its masks; no row is dropped at a node without one
  std::uint8_t bit;
  bool is_leaf, is_empty;  // whether tables have all that is below it
};

// What a leaf has in place of a test.
struct JointLeaf {
  std::uint32_t first_word;  // for each 64 masks a word for each of the path's columns: which masks fail it
  std::uint32_t columns;
};

class JointBackground {
 public:
  // Trees [first, end) and the background (columns, size); `bytes` bound the masks of all trees, half of them the tables. Trees from
  // `end()` on are left out: masks would be larger, or a path has very many columns.
  JointBackground(const Trees& trees, Matrix value, std::size_t first, std::size_t end, Matrix background,
                  std::size_t bytes);

  std::size_t end() const { return end_; }
  std::size_t bytes() const;

  // Add to base (rows, outputs) and sums (rows, 3, columns, outputs) what the trees contribute at x (rows, columns).
  void add(Matrix x, MatrixOut base, Array<double, 4> sums) const;

 private:
  friend class JointBuilder;
  struct Scratch;

  template <bool kPlain>
  bool goes_left(double threshold, std::uint32_t node, double x) const {
    return kPlain ? x <= threshold : trees_.goes_left(node, x);
  }
  template <bool kPlain>
  void add_tables(std::size_t first, std::size_t end, const double* x, double* sums, Scratch& scratch) const;
  template <bool kPlain>
  void walk(std::size_t at, const double* x, std::uint32_t failed, double* sums, Scratch& scratch) const;
  template <bool kPlain>
  void add_walks(std::size_t first, std::size_t end, const double* x, double* sums, Scratch& scratch) const;
  void add_leaf(const JointNode& leaf, std::uint32_t failed, double* sums, Scratch& scratch) const;

  // where each tree begins
  struct Tree {
    std::size_t step, table, node, line;
  };

  const Trees& trees_;
  std::size_t end_, outputs_;
  double weight_ = 0.0;
  bool has_sets_ = false;
  std::vector<double> base_;
  std::vector<Tree> starts_;      // and the end
  std::vector<JointTest> steps_;  // tests above tables
  std::vector<JointTest> tests_;  // in them
  std::vector<JointTable> tables_;
  std::vector<std::uint32_t> columns_;
  HugeVector<std::uint16_t> line_of_;  // by a table's outcomes
  HugeVector<double> lines_;           // (columns, outputs, 3) each
  HugeVector<JointNode> nodes_;
  std::vector<double> values_;  // of leaves that rows walk to, by `right`
  std::vector<std::uint32_t> least_;  // failed columns, at nodes
  HugeVector<JointMask> masks_;       // at leaves
  std::vector<JointLeaf> leaves_;  // by `right`
  HugeVector<std::uint64_t> words_;
};

}  // namespace limes
