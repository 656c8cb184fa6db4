// What each file adds to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace limes {

void add_cells(nanobind::module_& module);
void add_splits(nanobind::module_& module);
void add_forest_layout(nanobind::module_& module);
void add_forest_row(nanobind::module_& module);
void add_forest_block(nanobind::module_& module);
void add_forest_contributions(nanobind::module_& module);
void add_forest_pairs(nanobind::module_& module);
void add_joint(nanobind::module_& module);
void add_between_rows(nanobind::module_& module);
void add_joint_pairs(nanobind::module_& module);
void add_joint_background(nanobind::module_& module);
void add_trees(nanobind::module_& module);
void add_tree_walks(nanobind::module_& module);
void add_tree_bounds(nanobind::module_& module);
void add_leaf_boxes(nanobind::module_& module);
void add_tuple_masses(nanobind::module_& module);
void add_presence(nanobind::module_& module);
void add_words(nanobind::module_& module);
void add_subsets_to(nanobind::module_& module);
void add_waves_to(nanobind::module_& module);
void add_node_products_to(nanobind::module_& module);
void add_kept_products_to(nanobind::module_& module);
void add_exponentials_to(nanobind::module_& module);
void add_switches(nanobind::module_& module);
void add_pairwise(nanobind::module_& module);
void add_pool(nanobind::module_& module);

}  // namespace limes
