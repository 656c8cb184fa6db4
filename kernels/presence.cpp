// Paths of a forest that the words of one text can take: x[j] = value_of[j] where word word_of[j] is kept, else fill[j].
// A path to a leaf keeps some words and removes others, so that f(z) = sum of value * prod z_i * prod (1 - z_i).

#include <vector>

#include "arrays.h"
#include "kernels.h"
#include "trees.h"

namespace limes {
namespace {

constexpr std::int64_t kNone = -1;

// What a path has decided of a word.
constexpr signed char open = -1, removed = 0, kept = 1;

struct Waiting {
  std::size_t node;
  std::int64_t word;     // that the edge decides, or kNone
  bool is_kept;
  std::size_t length;    // of the path above
};

// Write the leaf of each path, and of each factor its path, its word and whether that is kept, as far as the arrays
// reach; return the numbers of paths and of factors. Called twice, first with empty arrays.
std::tuple<std::size_t, std::size_t> presence_paths(Integers word_of, Vector value_of, Vector fill, std::int64_t words,
                                                    const Trees& trees, Array<std::int64_t, 1> leaf,
                                                    Array<std::int64_t, 1> product, Array<std::int64_t, 1> word,
                                                    Array<bool, 1> present) {
  require(word_of.size() == trees.columns(), "word_of must have as many columns as the trees");
  require(value_of.size() == word_of.size() && fill.size() == word_of.size(), "columns must have one length");
  require(word.size() == product.size() && present.size() == product.size(), "factors must have one length");
  for (std::size_t j = 0; j < word_of.size(); ++j) require(word_of(j) < words, "a word is out of range");
  std::size_t paths = 0, factors = 0;
  std::vector<signed char> state(static_cast<std::size_t>(words), open);
  std::vector<std::size_t> path;
  std::vector<Waiting> stack;
  const auto decide = [&](std::int64_t which, bool is_kept) {
    path.push_back(static_cast<std::size_t>(which));
    state[path.back()] = is_kept ? kept : removed;
  };
  const auto shorten = [&](std::size_t length) {
    for (; path.size() > length; path.pop_back()) state[path.back()] = open;
  };
  for (const std::uint32_t root : trees.roots()) {
    stack.push_back({root, kNone, false, 0});
    while (!stack.empty()) {
      const Waiting next = stack.back();
      stack.pop_back();
      shorten(next.length);
      if (next.word != kNone) decide(next.word, next.is_kept);
      // Go down while there is one way; where there are two, the other one waits.
      std::size_t node = next.node;
      while (trees.is_split(node)) {
        const std::size_t j = trees.column(node);
        const std::size_t without = trees.child(node, trees.goes_left(node, fill(j)));
        const std::size_t with = trees.child(node, trees.goes_left(node, value_of(j)));
        const std::int64_t which = word_of(j);
        const signed char decided = which < 0 ? removed : state[static_cast<std::size_t>(which)];
        if (without == with || decided == removed) {
          node = without;
        } else if (decided == kept) {
          node = with;
        } else {
          stack.push_back({with, which, true, path.size()});
          decide(which, false);
          node = without;
        }
      }
      if (paths < leaf.size()) leaf(paths) = static_cast<std::int64_t>(node);
      for (std::size_t i = 0; i < path.size() && factors + i < product.size(); ++i) {
        product(factors + i) = static_cast<std::int64_t>(paths);
        word(factors + i) = static_cast<std::int64_t>(path[i]);
        present(factors + i) = state[path[i]] == kept;
      }
      ++paths;
      factors += path.size();
    }
    shorten(0);
  }
  return {paths, factors};
}

}  // namespace

void add_presence(nb::module_& module) { define(module, "presence_paths", &presence_paths); }

}  // namespace limes
