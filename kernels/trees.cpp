// f(x) = sum over trees of the value of the leaf that x reaches.

#include "trees.h"

#include <algorithm>

#include "arrays.h"
#include "kernels.h"
#include "tree_masks.h"

namespace limes {

// feature is -1 at leaves, set_of -1 where the split is by threshold.
struct NodeArrays {
  Integers feature;
  Vector threshold;
  Integers left, right;
  Flags missing_left;
  Integers set_of;
  Array<const bool, 2> sets;
  Integers roots;
};

Trees::Trees(std::size_t columns, const NodeArrays& nodes)
    : columns_(columns),
      codes_(nodes.sets.shape(1)),
      nodes_(nodes.feature.size()),
      sets_(nodes.sets.data(), nodes.sets.data() + nodes.sets.size()) {
  const auto& [feature, threshold, left, right, missing_left, set_of, sets, roots] = nodes;
  const std::size_t count = feature.size();
  require(threshold.size() == count && left.size() == count && right.size() == count &&
              missing_left.size() == count && set_of.size() == count,
          "nodes must have one length");
  require(columns < kLeaf && count < kNone && sets.shape(0) < kNone, "there are too many columns, nodes or sets");
  const auto is_below = [](std::int64_t value, std::size_t end) { return 0 <= value && static_cast<std::size_t>(value) < end; };
  for (std::size_t i = 0; i < count; ++i) {
    Node& node = nodes_[i];
    node = {threshold(i), kLeaf, {0, 0}, missing_left(i), kNone};
    if (feature(i) < 0) continue;
    require(is_below(feature(i), columns), "a node splits a column that is not there");
    require(is_below(left(i), count) && is_below(right(i), count), "a child is no node");
    require(set_of(i) < 0 || is_below(set_of(i), sets.shape(0)), "a split's set is not there");
    node.column = static_cast<std::uint32_t>(feature(i));
    node.child[0] = static_cast<std::uint32_t>(right(i));
    node.child[1] = static_cast<std::uint32_t>(left(i));
    if (set_of(i) >= 0) node.set = static_cast<std::uint32_t>(set_of(i));
  }
  for (std::size_t t = 0; t < roots.size(); ++t) {
    require(is_below(roots(t), count), "a root is no node");
    roots_.push_back(static_cast<std::uint32_t>(roots(t)));
  }
  refuse_cycles();
}

// Of a tree, no walk comes to a node twice. Libraries number children before or after their parents, so that only a
// walk can tell. Trees may share nodes.
void Trees::refuse_cycles() const {
  std::vector<std::uint32_t> tree(nodes_.size(), 0), waiting;  // the last tree that came to the node, from 1
  for (std::size_t t = 0; t < roots_.size(); ++t) {
    waiting.push_back(roots_[t]);
    while (!waiting.empty()) {
      const std::uint32_t node = waiting.back();
      waiting.pop_back();
      require(tree[node] != t + 1, "a node has two parents, or is its own ancestor");
      tree[node] = static_cast<std::uint32_t>(t + 1);
      if (!is_split(node)) continue;
      waiting.push_back(nodes_[node].child[0]);
      waiting.push_back(nodes_[node].child[1]);
    }
  }
}

const Thresholds& Trees::thresholds() const {
  std::call_once(sorted_, [this] { thresholds_ = std::make_shared<const Thresholds>(*this); });
  return *thresholds_;
}

namespace {

// Whether it pays to take rows down together: they are many, and no tree has many more nodes than rows reach.
bool together(const Trees& trees, std::size_t rows) {
  return rows >= 32 && trees.size() <= 2 * std::min<std::size_t>(rows, 512) * trees.roots().size();
}

// Add to total (n, k) the leaf values of each row of x (n, d). All rows go down a tree before the next tree is looked
// at: one tree fits the nearest cache.
void add_leaves(const Trees& trees, Matrix x, Matrix value, MatrixOut total) {
  const std::size_t rows = x.shape(0), outputs = total.shape(1);
  require(x.shape(1) >= trees.columns(), "x must have as many columns as the trees");
  require(value.shape(0) == trees.size() && value.shape(1) == outputs && total.shape(0) == rows,
          "value must be (nodes, outputs) and total (rows, outputs)");
  if (together(trees, rows)) {
    add_by_masks(trees, trees.thresholds(), x.data(), rows, x.shape(1), value.data(), outputs, total.data());
    return;
  }
  for (const std::uint32_t root : trees.roots()) {
    for (std::size_t i = 0; i < rows; ++i) {
      const double* row = x.data() + i * x.shape(1);
      std::size_t node = root;
      while (trees.is_split(node)) node = trees.child(node, trees.goes_left(node, row[trees.column(node)]));
      const double* leaf = value.data() + node * outputs;
      double* sum = total.data() + i * outputs;
      for (std::size_t k = 0; k < outputs; ++k) sum[k] += leaf[k];
    }
  }
}

}  // namespace

void add_trees(nb::module_& module) {
  nb::class_<Trees>(module, "Trees")
      .def("__init__",
           [](Trees* self, std::size_t columns, Integers feature, Vector threshold, Integers left, Integers right,
              Flags missing_left, Integers set_of, Array<const bool, 2> sets, Integers roots) {
             new (self) Trees(columns, {feature, threshold, left, right, missing_left, set_of, sets, roots});
           },
           nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
           nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
  define(module, "add_leaves", &add_leaves);
}

}  // namespace limes
