// Rows against a background that was taken in before: tests, a line of each table, and walks to the other leaves.

#include <algorithm>
#include <array>
#include <cmath>

#include "arrays.h"
#include "bits.h"
#include "joint_background.h"
#include "joint_gains.h"
#include "kernels.h"

namespace limes {
namespace {

// Rows that go through a tree before the next one is looked at, and numbers of their sums.
constexpr std::size_t kRows = 256, kSums = std::size_t{1} << 21;
// Lines of tables that a processor is asked for before they are read.
constexpr std::size_t kAhead = 24;
// Bytes of tables that stay in a near cache while rows pass.
constexpr std::size_t kNear = std::size_t{1} << 19;
constexpr std::size_t kLineOfCache = 64;

template <typename T>
void ask_for(const T* first, std::size_t numbers) {
#if defined(__GNUC__)
  const char* at = reinterpret_cast<const char*>(first);
  for (std::size_t byte = 0; byte < numbers * sizeof(T); byte += kLineOfCache) __builtin_prefetch(at + byte);
#else
  (void)first;
  (void)numbers;
#endif
}

}  // namespace

struct JointBackground::Scratch {
  std::vector<std::uint32_t> outcomes, places;
  std::array<const double*, kAhead> lines;
  std::array<std::uint32_t, kPathColumns> column_of{};
  LeafGains gains;
};

// Tables of the trees [first, end).
template <bool kPlain>
void JointBackground::add_tables(std::size_t first, std::size_t end, const double* x, double* sums,
                                 Scratch& scratch) const {
  const Tree &begin = starts_[first], &last = starts_[end];
  std::vector<std::uint32_t>&outcomes = scratch.outcomes, &places = scratch.places;
  places.resize(last.table - begin.table);
  const auto append = [&](std::uint32_t above, const JointTest& test) {
    return above << 1 | static_cast<std::uint32_t>(goes_left<kPlain>(test.threshold, test.node, x[test.column]));
  };
  for (std::size_t tree = first; tree < end; ++tree) {
    const Tree &its = starts_[tree], &following = starts_[tree + 1];
    outcomes.resize(1 + following.step - its.step);
    for (std::size_t step = its.step; step < following.step; ++step) {
      outcomes[1 + step - its.step] = append(outcomes[steps_[step].above], steps_[step]);
    }
    for (std::size_t t = its.table; t < following.table; ++t) {
      const JointTable& table = tables_[t];
      std::uint32_t place = outcomes[table.above];
      for (std::uint32_t i = 0; i < table.tests; ++i) place = append(place, tests_[table.first_test + i]);
      places[t - begin.table] = place;
      ask_for(&line_of_[table.first_outcome + place], 1);
    }
  }
  const std::size_t a_column = 3 * outputs_, count = places.size();
  for (std::size_t i = 0; i < count + kAhead; ++i) {
    if (i >= kAhead) {
      const JointTable& table = tables_[begin.table + i - kAhead];
      const double* line = scratch.lines[i % kAhead];
      const std::uint32_t *column = columns_.data() + table.first_column, *const end_of = column + table.columns;
      if (a_column == 3) {  // most of the time
        for (; column != end_of; ++column, line += 3) {
          double* to = sums + *column * 3;
          to[0] += line[0];
          to[1] += line[1];
          to[2] += line[2];
        }
      }
      for (; column != end_of; ++column, line += a_column) {
        double* to = sums + *column * a_column;
        for (std::size_t k = 0; k < a_column; ++k) to[k] += line[k];
      }
    }
    if (i < count) {
      const JointTable& table = tables_[begin.table + i];
      const std::size_t width = table.columns * a_column;
      const double* line = lines_.data() + table.first_line + line_of_[table.first_outcome + places[i]] * width;
      ask_for(line, width);
      scratch.lines[i % kAhead] = line;
    }
  }
}

template <bool kPlain>
void JointBackground::walk(std::size_t at, const double* x, std::uint32_t failed, double* sums, Scratch& scratch) const {
  const JointNode& node = nodes_[at];
  if (node.is_empty) return;
  if (node.is_leaf) {
    add_leaf(node, failed, sums, scratch);
    return;
  }
  bool meets = node.first == node.end;
  for (std::uint32_t i = node.first; i < node.end && !meets; ++i) meets = (least_[i] & failed) == 0;
  if (!meets) return;
  scratch.column_of[node.bit] = node.column;
  const std::uint32_t fails = failed | std::uint32_t{1} << node.bit;
  const bool left = goes_left<kPlain>(node.threshold, node.node, x[node.column]);
  walk<kPlain>(at + 1, x, left ? failed : fails, sums, scratch);
  walk<kPlain>(node.right, x, left ? fails : failed, sums, scratch);
}

void JointBackground::add_leaf(const JointNode& leaf, std::uint32_t failed, double* sums, Scratch& scratch) const {
  LeafGains& gains = scratch.gains;
  const std::size_t columns = leaves_[leaf.right].columns;
  const std::uint64_t* words = words_.data() + leaves_[leaf.right].first_word;
  bool meets = false;
  for (std::size_t first = leaf.first; first < leaf.end; first += 64, words += columns) {
    std::uint64_t fail = 0;
    for (std::uint32_t rest = failed; rest != 0; rest &= rest - 1) fail |= words[lowest_bit(rest)];
    const std::size_t count = leaf.end - first;
    std::uint64_t met = ~fail & (count < 64 ? (std::uint64_t{1} << count) - 1 : ~std::uint64_t{0});
    if (met != 0 && !meets) {
      gains.start(failed, columns);
      meets = true;
    }
    for (; met != 0; met &= met - 1) {
      const JointMask mask = masks_[first + lowest_bit(met)];
      gains.meet(mask.failed(), mask.number(), mask.rows * weight_);
    }
  }
  if (!meets) return;
  gains.end();
  const double* value = values_.data() + leaf.right * outputs_;
  for (std::uint64_t rest = gains.touched(); rest != 0; rest &= rest - 1) {
    const std::size_t bit = lowest_bit(rest);
    const Gain& gain = gains[bit];
    double* to = sums + scratch.column_of[bit] * outputs_ * 3;
    const double* of_output = value;
    do {
      to[0] += *of_output * gain.value;
      to[1] += *of_output * gain.alone;
      to[2] += *of_output * gain.last;
      to += 3;
    } while (++of_output != value + outputs_);
  }
}

template <bool kPlain>
void JointBackground::add_walks(std::size_t first, std::size_t end, const double* x, double* sums,
                                Scratch& scratch) const {
  for (std::size_t tree = first; tree < end; ++tree) {
    if (starts_[tree].node < starts_[tree + 1].node) walk<kPlain>(starts_[tree].node, x, 0, sums, scratch);
  }
}

void JointBackground::add(Matrix x, MatrixOut base, Array<double, 4> sums) const {
  const std::size_t rows = x.shape(0), columns = trees_.columns(), size = columns * outputs_ * 3;
  require(x.shape(1) == columns, "x must be (rows, columns)");
  require(base.shape(0) == rows && base.shape(1) == outputs_ && sums.shape(0) == rows && sums.shape(1) == 3 &&
              sums.shape(2) == columns && sums.shape(3) == outputs_,
          "base must be (rows, outputs) and sums (rows, 3, columns, outputs)");
  // no `FlushToZero`: thresholds may be the numbers next to 0
  Scratch scratch;
  const std::size_t step = std::min({kRows, std::max<std::size_t>(1, kSums / std::max<std::size_t>(1, size)), rows});
  std::vector<double> total(step * size);
  for (std::size_t start = 0; start < rows; start += step) {
    const std::size_t count = std::min(step, rows - start);
    std::fill(total.begin(), total.end(), 0.0);
    const auto each = [&](std::size_t first, std::size_t end, auto plain, auto other) {
      for (std::size_t i = 0; i < count; ++i) {
        const double* row = x.data() + (start + i) * columns;
        const bool is_plain = !has_sets_ && std::none_of(row, row + columns, [](double v) { return std::isnan(v); });
        (this->*(is_plain ? plain : other))(first, end, row, &total[i * size], scratch);
      }
    };
    // tables of all trees first, then walks, in the same order for few rows and many
    const std::size_t trees = starts_.size() - 1;
    for (std::size_t first = 0, end = 0; first < trees; first = end) {
      // one row by itself goes through all trees, so that its lines are asked for early
      do {
        ++end;
      } while (end < trees && (count == 1 || (starts_[end + 1].line - starts_[first].line) * sizeof(double) <= kNear));
      each(first, end, &JointBackground::add_tables<true>, &JointBackground::add_tables<false>);
    }
    for (std::size_t tree = 0; tree < trees; ++tree) {
      each(tree, tree + 1, &JointBackground::add_walks<true>, &JointBackground::add_walks<false>);
    }
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < outputs_; ++k) base(start + i, k) += base_[k];
      for (std::size_t cell = 0; cell < columns * outputs_; ++cell) {
        const std::size_t j = cell / outputs_, k = cell % outputs_;
        for (std::size_t which = 0; which < 3; ++which) sums(start + i, which, j, k) += total[i * size + 3 * cell + which];
      }
    }
  }
}

}  // namespace limes
