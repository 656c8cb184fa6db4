// limes._kernels: the loops that Python is too slow for. Each file states its formulas; tests compare each function
// with a plain version entry for entry.

#include "kernels.h"
#include "processor.h"

NB_MODULE(_kernels, module) {
  limes::widest_allowed();  // an unknown name is refused at once
  // An explainer that lives until the interpreter ends leaks nothing that matters.
  nanobind::set_leak_warnings(false);
  limes::add_cells(module);
  limes::add_trees(module);
  limes::add_joint_background(module);
  limes::add_splits(module);
  limes::add_forest_layout(module);
  limes::add_forest_row(module);
  limes::add_forest_block(module);
  limes::add_forest_contributions(module);
  limes::add_forest_pairs(module);
  limes::add_joint(module);
  limes::add_between_rows(module);
  limes::add_joint_pairs(module);
  limes::add_tree_walks(module);
  limes::add_tree_bounds(module);
  limes::add_leaf_boxes(module);
  limes::add_tuple_masses(module);
  limes::add_presence(module);
  limes::add_words(module);
  limes::add_subsets_to(module);
  limes::add_waves_to(module);
  limes::add_node_products_to(module);
  limes::add_kept_products_to(module);
  limes::add_exponentials_to(module);
  limes::add_switches(module);
  limes::add_pairwise(module);
  limes::add_pool(module);
}
