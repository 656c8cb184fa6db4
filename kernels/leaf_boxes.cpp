// Boxes of cells that may hold an answer of a forest below a limit, best first, by lists of the leaves they reach.
//
// A leaf is a run of cells in each cut column, and a set of at most 64 cells in each set column; see _rules/leaves.py.
// Leaves ascend within their tree, so that the first one of each tree that a box reaches is its least:
//
//     sum over trees of the least leaf <= f,    equal where the least leaves of all trees have a cell in common.
//
// Such cells are a candidate, which the caller accepts, or excludes by going on. A box without is cut where the trees
// that lie wholly on one side, and those wholly on the other, have the most to lose: their second least leaf less their
// least.

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "arrays.h"
#include "kernels.h"

namespace limes {
namespace {

using Cell = std::int32_t;
using Bits = std::uint64_t;
using Cells = Array<const Cell, 2>;
using Sets = Array<const Bits, 2>;

// Share of all weight below which a side has nothing to lose.
constexpr double kNoWeight = 1e-12;
// Bytes of boxes that wait to be cut, at most.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

// Runs of cells [first, last) and sets of cells.
struct Region {
  std::vector<Cell> first, last;
  std::vector<Bits> bits;
};

// The leaves of all trees; tree (L,), value (L,), first and last (L, C), bits (L, S), sizes (C,): cells of cut columns.
class Leaves {
 public:
  Leaves(Integers tree, Vector value, Cells first, Cells last, Sets bits, Integers sizes)
      : tree(tree), value(value), first(first), last(last), bits(bits), sizes(sizes) {
    const std::size_t leaves = value.size();
    require(tree.size() == leaves && first.shape(0) == leaves && last.shape(0) == leaves && bits.shape(0) == leaves,
            "leaves must agree in number");
    require(first.shape(1) == sizes.size() && last.shape(1) == sizes.size(), "sizes must be (cut columns,)");
    start_of_runs.push_back(0);
    for (std::size_t i = 0; i < leaves; ++i) {
      for (std::size_t j = 0; j < sizes.size(); ++j) {
        require(0 <= first(i, j) && first(i, j) < last(i, j) && last(i, j) <= sizes(j), "a run is outside its column");
        // a leaf bounds few of many columns
        if (first(i, j) > 0 || last(i, j) < sizes(j)) column_of_runs.push_back(j);
      }
      start_of_runs.push_back(column_of_runs.size());
    }
    for (std::size_t j = 0; j < sizes.size(); ++j) {
      starts.push_back(width);
      width += static_cast<std::size_t>(sizes(j)) + 1;
    }
  }

  std::size_t cuts() const { return first.shape(1); }
  std::size_t sets() const { return bits.shape(1); }

  const Integers tree;
  const Vector value;
  const Cells first, last;
  const Sets bits;
  const Integers sizes;
  // the columns in which a leaf is shorter than the column
  std::vector<std::size_t> start_of_runs, column_of_runs;
  // where the cells of each cut column begin, all in one row
  std::vector<std::size_t> starts;
  std::size_t width = 0;
};

// A box, its leaves in trees of which it reaches several, and the sum of all other trees.
struct Box {
  Region region;
  std::vector<Cell> leaves;
  double base, low;
  std::size_t number;
};

// The lowest bound is at the top of the heap; of equal ones the older box.
struct IsLater {
  bool operator()(const Box& a, const Box& b) const { return a.low != b.low ? a.low > b.low : a.number > b.number; }
};

std::size_t bytes_of(const Box& box) {
  return sizeof(Box) + sizeof(Cell) * (box.leaves.size() + 2 * box.region.first.size()) +
         sizeof(Bits) * box.region.bits.size();
}

enum class Event { kNoMore = 0, kCandidate = 1, kSpent = 2 };

class Search {
 public:
  Search(const Leaves& table, Integers first, Integers last, Array<const Bits, 1> bits, Integers leaves, double base,
         double limit)
      : table_(table), limit_(limit), before_(table.width), behind_(table.width) {
    require(first.size() == table.cuts() && last.size() == table.cuts() && bits.size() == table.sets(),
            "a box must be (cut columns,), (cut columns,) and (set columns,)");
    Box root{};
    for (std::size_t j = 0; j < table.cuts(); ++j) {
      require(0 <= first(j) && first(j) < last(j) && last(j) <= table.sizes(j), "a box is outside a column");
      root.region.first.push_back(static_cast<Cell>(first(j)));
      root.region.last.push_back(static_cast<Cell>(last(j)));
    }
    for (std::size_t s = 0; s < table.sets(); ++s) root.region.bits.push_back(bits(s));
    const auto count = static_cast<std::int64_t>(table.value.size());
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      require(0 <= leaves(i) && leaves(i) < count, "there is no such leaf");
      root.leaves.push_back(static_cast<Cell>(leaves(i)));
    }
    root.base = base;
    bound(root);
    push(std::move(root));
  }

  double low() const { return low_; }
  std::size_t cut() const { return cut_; }
  // Whether no memory is left for more boxes.
  bool is_full() const { return bytes_ > kMostBytes; }

  // Cut boxes until ``most`` are cut in all, or a candidate comes, whose cells are written.
  int advance(std::size_t most, Array<std::int64_t, 1> first, Array<std::int64_t, 1> last, Array<Bits, 1> bits) {
    require(first.size() == table_.cuts() && last.size() == table_.cuts() && bits.size() == table_.sets(),
            "a box must be (cut columns,), (cut columns,) and (set columns,)");
    if (refused_) exclude();
    while (!pending_.empty() && pending_.front().low < limit_) {
      low_ = pending_.front().low;
      list_trees(pending_.front());
      std::optional<Region> common = common_cells(pending_.front().region);
      if (!common && (cut_ >= most || is_full())) return static_cast<int>(Event::kSpent);
      Box box = pop();
      if (common) {
        std::copy(common->first.begin(), common->first.end(), first.data());
        std::copy(common->last.begin(), common->last.end(), last.data());
        std::copy(common->bits.begin(), common->bits.end(), bits.data());
        refused_.emplace(std::move(box), std::move(*common));
        return static_cast<int>(Event::kCandidate);
      }
      ++cut_;
      auto [one, other] = halves(box.region);
      add(box, std::move(one));
      add(box, std::move(other));
    }
    low_ = pending_.empty() ? std::numeric_limits<double>::infinity() : pending_.front().low;
    return static_cast<int>(Event::kNoMore);
  }

 private:
  void push(Box box) {
    box.number = pushed_++;
    bytes_ += bytes_of(box);
    pending_.push_back(std::move(box));
    std::push_heap(pending_.begin(), pending_.end(), IsLater{});
  }

  Box pop() {
    std::pop_heap(pending_.begin(), pending_.end(), IsLater{});
    Box box = std::move(pending_.back());
    pending_.pop_back();
    bytes_ -= bytes_of(box);
    return box;
  }

  // Sum up the least leaves of a box; trees of one leaf are added to its base.
  void bound(Box& box) const {
    double least = 0.0;
    std::size_t kept = 0;
    for (std::size_t i = 0, end; i < box.leaves.size(); i = end) {
      end = end_of_tree(box.leaves, i);
      const double value = table_.value(box.leaves[i]);
      if (end == i + 1) {
        box.base += value;
        continue;
      }
      least += value;
      std::copy(box.leaves.begin() + i, box.leaves.begin() + end, box.leaves.begin() + kept);
      kept += end - i;
    }
    box.leaves.resize(kept);
    box.leaves.shrink_to_fit();
    box.low = box.base + least;
  }

  std::size_t end_of_tree(const std::vector<Cell>& leaves, std::size_t begin) const {
    std::size_t end = begin + 1;
    while (end < leaves.size() && table_.tree(leaves[end]) == table_.tree(leaves[begin])) ++end;
    return end;
  }

  // The least leaf of each undecided tree, and by how much the second least is larger.
  void list_trees(const Box& box) {
    best_.clear();
    weight_.clear();
    bool any = false;
    for (std::size_t i = 0; i < box.leaves.size(); i = end_of_tree(box.leaves, i)) {
      best_.push_back(box.leaves[i]);
      weight_.push_back(table_.value(box.leaves[i + 1]) - table_.value(box.leaves[i]));
      any = any || weight_.back() != 0.0;
    }
    if (!any) std::fill(weight_.begin(), weight_.end(), 1.0);
  }

  // Add a part of a box that may hold an answer below the limit.
  void add(const Box& box, Region part) {
    Box child{};
    child.leaves.reserve(box.leaves.size());
    // only the columns that the part cuts tell leaves apart
    cut_runs_.clear();
    cut_sets_.clear();
    for (std::size_t j = 0; j < table_.cuts(); ++j) {
      if (part.first[j] > box.region.first[j] || part.last[j] < box.region.last[j]) cut_runs_.push_back(j);
    }
    for (std::size_t s = 0; s < table_.sets(); ++s) {
      if (part.bits[s] != box.region.bits[s]) cut_sets_.push_back(s);
    }
    for (const Cell leaf : box.leaves) {
      bool reached = true;
      for (const std::size_t j : cut_runs_) {
        reached = reached && table_.first(leaf, j) < part.last[j] && table_.last(leaf, j) > part.first[j];
      }
      for (const std::size_t s : cut_sets_) reached = reached && (table_.bits(leaf, s) & part.bits[s]) != 0;
      if (reached) child.leaves.push_back(leaf);
    }
    child.region = std::move(part);
    child.base = box.base;
    bound(child);
    child.low = std::max(child.low, box.low);  // roundings of sums must not lower a bound
    if (child.low < limit_) push(std::move(child));
  }

  // The cells that the least leaves of all trees share in a box.
  std::optional<Region> common_cells(Region region) const {
    for (const Cell leaf : best_) {
      for (std::size_t i = table_.start_of_runs[leaf]; i < table_.start_of_runs[leaf + 1]; ++i) {
        const std::size_t j = table_.column_of_runs[i];
        region.first[j] = std::max(region.first[j], table_.first(leaf, j));
        region.last[j] = std::min(region.last[j], table_.last(leaf, j));
        if (region.first[j] >= region.last[j]) return std::nullopt;
      }
      for (std::size_t s = 0; s < table_.sets(); ++s) {
        region.bits[s] &= table_.bits(leaf, s);
        if (region.bits[s] == 0) return std::nullopt;
      }
    }
    return region;
  }

  // Go on with all of a box but the cells that were refused.
  void exclude() {
    const auto [box, inner] = std::move(*refused_);
    refused_.reset();
    Region rest = box.region;
    for (std::size_t j = 0; j < table_.cuts(); ++j) {
      if (rest.first[j] < inner.first[j]) {
        add(box, with_run(rest, j, rest.first[j], inner.first[j]));
        rest.first[j] = inner.first[j];
      }
      if (inner.last[j] < rest.last[j]) {
        add(box, with_run(rest, j, inner.last[j], rest.last[j]));
        rest.last[j] = inner.last[j];
      }
    }
    for (std::size_t s = 0; s < table_.sets(); ++s) {
      if (const Bits others = rest.bits[s] & ~inner.bits[s]) {
        add(box, with_bits(rest, s, others));
        rest.bits[s] = inner.bits[s];
      }
    }
  }

  // Cut a box where the trees on its two sides have the most to lose.
  std::pair<Region, Region> halves(const Region& region) {
    double score = 0.0;
    std::size_t column = 0;
    Cell cell = 0;
    add_weights(region);
    for (std::size_t j = 0; j < table_.cuts(); ++j) {
      double* const before = before_.data() + table_.starts[j];
      double* const behind = behind_.data() + table_.starts[j];
      for (Cell c = region.last[j] - 1; c-- > region.first[j] + 1;) behind[c] += behind[c + 1];
      double sum = 0.0;
      for (Cell c = region.first[j] + 1; c < region.last[j]; ++c) {
        sum += before[c];
        const double both = std::min(sum, behind[c]);
        if (both > score) score = both, column = j, cell = c;
      }
    }
    std::optional<std::pair<std::size_t, Bits>> part;
    for (std::size_t s = 0; s < table_.sets(); ++s) {
      if (const std::optional<Bits> its = best_part(region, s, score)) part.emplace(s, *its);
    }
    if (part) return divided(region, part->first, part->second);
    double whole = 0.0;
    for (const double weight : weight_) whole += weight;
    if (score > kNoWeight * whole) {
      return cut_at(region, column, cell);
    }
    return any_halves(region);
  }

  // Write the weight of trees whose least leaf ends at each cell inside a box, and begins there.
  void add_weights(const Region& region) {
    for (std::size_t j = 0; j < table_.cuts(); ++j) {
      const auto begin = static_cast<std::ptrdiff_t>(table_.starts[j]);
      std::fill(before_.begin() + begin + region.first[j], before_.begin() + begin + region.last[j], 0.0);
      std::fill(behind_.begin() + begin + region.first[j], behind_.begin() + begin + region.last[j], 0.0);
    }
    for (std::size_t t = 0; t < best_.size(); ++t) {
      const Cell leaf = best_[t];
      for (std::size_t i = table_.start_of_runs[leaf]; i < table_.start_of_runs[leaf + 1]; ++i) {
        const std::size_t j = table_.column_of_runs[i];
        const Cell first = table_.first(leaf, j), last = table_.last(leaf, j);
        if (last < region.last[j]) before_[table_.starts[j] + static_cast<std::size_t>(last)] += weight_[t];
        if (first > region.first[j]) behind_[table_.starts[j] + static_cast<std::size_t>(first)] += weight_[t];
      }
    }
  }

  // The cells of a set column by which a box is cut with more to lose than the score, which is raised.
  std::optional<Bits> best_part(const Region& region, std::size_t s, double& score) {
    parts_.clear();
    double whole = 0.0;
    for (std::size_t t = 0; t < best_.size(); ++t) {
      const Bits its = table_.bits(best_[t], s) & region.bits[s];
      if (its == region.bits[s]) continue;
      whole += weight_[t];
      const auto same =
          std::find_if(parts_.begin(), parts_.end(), [its](const auto& part) { return part.first == its; });
      if (same == parts_.end()) {
        parts_.emplace_back(its, weight_[t]);
      } else {
        same->second += weight_[t];
      }
    }
    if (whole <= 2.0 * score) return std::nullopt;  // each side has a part of it
    std::sort(parts_.begin(), parts_.end());
    std::optional<Bits> best;
    for (const auto& [its, unused] : parts_) {
      double inside = 0.0, outside = 0.0;
      for (const auto& [other, weight] : parts_) {
        if ((other & ~its) == 0) inside += weight;
        if ((other & its) == 0) outside += weight;
      }
      if (std::min(inside, outside) > score) {
        score = std::min(inside, outside);
        best = its;
      }
    }
    return best;
  }

  // Cut a box at an end of one of the least leaves, which share no cell.
  std::pair<Region, Region> any_halves(const Region& region) const {
    for (std::size_t j = 0; j < table_.cuts(); ++j) {
      std::vector<Cell> ends;
      for (const Cell leaf : best_) {
        for (const Cell end : {table_.first(leaf, j), table_.last(leaf, j)}) {
          if (end > region.first[j] && end < region.last[j]) ends.push_back(end);
        }
      }
      if (ends.empty()) continue;
      std::sort(ends.begin(), ends.end());
      return cut_at(region, j, ends[ends.size() / 2]);
    }
    for (std::size_t s = 0; s < table_.sets(); ++s) {
      for (const Cell leaf : best_) {
        const Bits its = table_.bits(leaf, s) & region.bits[s];
        if (its != region.bits[s]) return divided(region, s, its);
      }
    }
    throw std::logic_error("leaves that share no cell have an end inside the box");
  }

  static std::pair<Region, Region> cut_at(const Region& region, std::size_t j, Cell cell) {
    return {with_run(region, j, region.first[j], cell), with_run(region, j, cell, region.last[j])};
  }

  static std::pair<Region, Region> divided(const Region& region, std::size_t s, Bits bits) {
    return {with_bits(region, s, bits), with_bits(region, s, region.bits[s] & ~bits)};
  }

  static Region with_run(Region region, std::size_t j, Cell first, Cell last) {
    region.first[j] = first;
    region.last[j] = last;
    return region;
  }

  static Region with_bits(Region region, std::size_t s, Bits bits) {
    region.bits[s] = bits;
    return region;
  }

  const Leaves& table_;
  const double limit_;
  std::vector<Box> pending_;
  std::optional<std::pair<Box, Region>> refused_;
  std::size_t pushed_ = 0, cut_ = 0, bytes_ = 0;
  double low_ = -std::numeric_limits<double>::infinity();
  // of the box at hand: the least leaf of each undecided tree, what it has to lose, and the sums of this that end and
  // begin at cells
  std::vector<Cell> best_;
  std::vector<double> weight_, before_, behind_;
  std::vector<std::pair<Bits, double>> parts_;
  std::vector<std::size_t> cut_runs_, cut_sets_;
};

}  // namespace

void add_leaf_boxes(nb::module_& module) {
  nb::class_<Leaves>(module, "Leaves")
      .def(nb::init<Integers, Vector, Cells, Cells, Sets, Integers>(), nb::arg().noconvert(), nb::arg().noconvert(),
           nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
  nb::class_<Search>(module, "LeafBoxes")
      .def(nb::init<const Leaves&, Integers, Integers, Array<const Bits, 1>, Integers, double, double>(), nb::arg(),
           nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(),
           nb::arg(), nb::keep_alive<1, 2>(), nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("low", &Search::low)
      .def_prop_ro("cut", &Search::cut)
      .def_prop_ro("is_full", &Search::is_full)
      .def("advance", &Search::advance, nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
           nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace limes
