// Nodes of a forest, checked when they are taken over, and where one sends a value.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace limes {

struct NodeArrays;
struct Thresholds;

// A copy of a forest's node arrays. Walks read no array of Python's, and check nothing: columns, children and sets
// exist, and no node is its own ancestor. Files for one set of instructions include this: it knows no such array.
class Trees {
 public:
  Trees(std::size_t columns, const NodeArrays& nodes);

  std::size_t columns() const { return columns_; }
  std::size_t size() const { return nodes_.size(); }
  const std::vector<std::uint32_t>& roots() const { return roots_; }

  std::size_t codes() const { return codes_; }

  bool is_split(std::size_t node) const { return nodes_[node].column != kLeaf; }
  std::size_t column(std::size_t node) const { return nodes_[node].column; }
  std::size_t child(std::size_t node, bool goes_left) const { return nodes_[node].child[goes_left]; }
  double threshold(std::size_t node) const { return nodes_[node].threshold; }
  bool missing_left(std::size_t node) const { return nodes_[node].missing_left; }
  bool is_by_set(std::size_t node) const { return nodes_[node].set != kNone; }
  bool in_set(std::size_t node, std::size_t code) const { return sets_[nodes_[node].set * codes_ + code]; }
  bool is_code(double x) const { return 0.0 <= x && x < static_cast<double>(codes_) && x == std::floor(x); }
  bool goes_left(std::size_t node, double x) const {
    if (std::isnan(x)) return missing_left(node);
    if (!is_by_set(node)) return x <= threshold(node);
    return is_code(x) && in_set(node, static_cast<std::size_t>(x));
  }

  // Where rows are many; made at the first use.
  const Thresholds& thresholds() const;

 private:
  static constexpr std::uint32_t kLeaf = 0xFFFFFFFF;
  static constexpr std::uint32_t kNone = 0x7FFFFFFF;

  struct Node {
    double threshold;
    std::uint32_t column;
    std::uint32_t child[2];  // right, left
    std::uint32_t missing_left : 1, set : 31;
  };

  void refuse_cycles() const;

  std::size_t columns_, codes_;
  std::vector<Node> nodes_;
  std::vector<bool> sets_;
  std::vector<std::uint32_t> roots_;
  mutable std::once_flag sorted_;
  mutable std::shared_ptr<const Thresholds> thresholds_;
};

}  // namespace limes
