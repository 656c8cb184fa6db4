"""The one place where tests import private names: a name that moves changes this file, and no test.

Modules are loaded when one of their names is: a test needs no library that it does not use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Names by module; "name:alias" where two modules have the same one
NAMES = {
    "limes": "_HOME _arrays _cli _functions:columnwise _kernels _threads",
    "limes._app": "server server:launch",
    "limes._app.session": "WhatIfSession",
    "limes._app.server": "PatientProtocol application serve",
    "limes._arrays": "are_probabilities column_stds is_constant mean_and_std power_of_two r_squared",
    "limes._checks": "MissingLibraryError without_credentials",
    "limes._cli": "files letters program tables",
    "limes._cli.files": "features_of output_of read_table read_image",
    "limes.models._calling.causal": "CausalModel",
    "limes._cli.advice": "on_command_line",
    "limes._cli.prompts": "read_prompt",
    "limes._cli.tables": "open_table step_of",
    "limes._cli.program": "app",
    "limes._cli.watching": "ending_in_order rows_are_supervised watched",
    "limes._dialects": "Dialect dialect_of to_usual",
    "limes._diagnostics": "diagnosis finding",
    "limes._diagnostics.bandwidth": "grid",
    "limes._diagnostics.context": "ExactSource Estimate",
    "limes._diagnostics.finding": "Finding RowOutput",
    "limes._diagnostics.summary": "GUARANTEE greedy_pick largest_features",
    "limes._diagnostics.tables": (
        "Alignment Profile Dependence OutsideValues _most_correlated _subsample Edge"
    ),
    "limes._explainers.hierarchy": "GroupedUnits account_of",
    "limes._explainers.set_controls": "lasso ridge set_control",
    "limes._expectations": "exact forest linked moments words:word_expectations linked_words",
    "limes._fidelity": "variance weighted_rows",
    "limes._sampling": (
        "sampled pooled:pooled_module least_squares:least_squares_module pool_fit:pool_fit_module"
    ),
    "limes._shapley": "interventional coalitions curved_margins exact:contributions",
    "limes._shapley.game_controls": (
        "BoostedGame Bumps ColumnFunctions IndependentDraws OccurringDraws SumOfPairs group_regression"
    ),
    "limes._shapley.set_sampler": "law_of_sizes weights_of_sets",
    "limes._shapley.covers": "Covers",
    "limes._shapley.enumerated": "enumerated",
    "limes._shapley.exact": "RowContributions exact_contributions interacting quadrature",
    "limes._sampling.controls": "CONTROLS control no_control switches wide",
    "limes._sampling.controls.control": (
        "PENALTIES ZeroControl if_better_than_linear leave_one_out_errors roots_of_weights"
    ),
    "limes._sampling.controls.switches": "Covariance gaussian_process logistic_control switch_kernels",
    "limes._sampling.controls.tables": "CellBasis MarginControl Units share_beyond_trees tree_control",
    "limes._sampling.crossfit": "SimulatedControl SimulatedLaw additive network",
    "limes._expectations.exact": "ExactExpectation",
    "limes._expectations.forest": "ForestExpectation",
    "limes.models.forms._tuples": "ForestOfTuples",
    "limes.designs._tuples": "law_of_tuples",
    "limes._tuples": "ColumnGroups",
    "limes._sampling.least_squares": (
        "AnswerStatistics Clusters ControlMoments FeatureSupport Tolerance WeightedSample "
        "is_surprising least_squares:least_squares_of_rows"
    ),
    "limes._expectations.linked": "LinkedExpectation",
    "limes._expectations.linked_words": "PANEL_ERROR functions nodes_of panel_nodes _of_margin",
    "limes._expectations.moments": "MomentCache Moments explain_rows",
    "limes._expectations.of_forms": "columns_read exact_expectation",
    "limes._sampling.pool": "Pool SEQUENCES SMALLEST pool_sizes",
    "limes._sampling.pool_fit": (
        "CellMoments ExplainedRows NormalEquations PoolSample cell_codes least_squares_of_pool"
    ),
    "limes._sampling.pooled": "PooledExpectation",
    "limes._sampling.sampled": "repetitions SampledExpectation Sampling",
    "limes._expectations.softmax": "SoftmaxExpectation",
    "limes._expectations.summed": "envelope SummedExpectation",
    "limes._expectations.tabulated": "ColumnTerm NodeGroup NodeGroups waves_at",
    "limes._expectations.wide": "WideColumns",
    "limes._fidelity.variance": "exact_variance link_variance",
    "limes._shapley.starts": "OccurringStarts ProductStarts",
    "limes._sampling.word_effects": "WordEffects has_word_effects",
    "limes._shapley.permutations": "ControlVariates PermutationSampler",
    "limes._shapley.interventional": "Interventional against",
    "limes._fidelity.weighted_rows": "JointEffects Total WeightedRows largest_pairs pair_estimate",
    "limes._explainers.few_units": "CompletedGame leading_sets",
    "limes._explainers.superpixels": "filled filler _FILLS _SEGMENTATIONS",
    "limes._explainers.answers": "LINKS:network_links",
    "limes._explainers.backgrounds": "BackgroundAnswers",
    "limes._explainers.options": "METHODS",
    "limes._explainers.tables.fits": "TableFits",
    "limes._explainers.verified_form": "TABLE_DRAWS check_draws product_rows",
    "limes._explainers.results": "misleading_surrogates odd_probabilities sampling_warnings",
    "limes._explainers.series": "_FILLS:series_fills _SEGMENTATIONS:series_segmentations",
    "limes._explainers.tables": "fits suggestion:suggestion_module",
    "limes._explainers.tables.laws": "TABLE_LAWS number_texts",
    "limes._explainers.tables.model": "TabularModel",
    "limes._explainers.tables.verification": "Probe",
    "limes._explainers.tables.shared": "SharedDraws",
    "limes._explainers.tables.suggestion": "_WORTH",
    "limes._explainers.tables.table": "Table usual_cells",
    "limes._explainers.splits": "sentences words",
    "limes._explanation": "Explanation UnknownNameError",
    "limes._explanation.attribution": "Contributions changed requested",
    "limes._explanation.explanation": "from_fields",
    "limes._explanation.fit": "Effect Effects Fit",
    "limes._explanation.json": "from_data_url labels_from_data_url labels_to_data_url to_data_url",
    "limes._warnings": "CODES NOT_TRUSTED WARNINGS RowWarning",
    "limes._explanation.selection": "shown_of",
    "limes._explanation.view": "bar_units certain_at fit_remark output_title view_row",
    "limes._explanation.wording": (
        "beside cell count difference error estimate number one_line shorten shorten_condition estimates "
        "percentage percentages rule_text signed_column"
    ),
    "limes._functions": (
        "Bump Decay Filled Identity Interval Lookup Polynomial Power Shape SmoothFunctions Stacked Step"
    ),
    "limes._maple": "WeightedMoments",
    "limes._fitting": "fit_rows",
    "limes._rules.covering": "shortest widest",
    "limes._rules.contrast_question": "hitting_sets",
    "limes._rules.hitting": "smallest_hitting_set",
    "limes._rules.least_cost": "cheapest_choice",
    "limes._rules.bounds": "Searched bounds_of",
    "limes._rules": "model:sparse_model pairwise rule:_sparse_pipeline solvers:search",
    "limes._rules.neighbourhood": (
        "FLIP_LAWS ColumnChanges ColumnDraws CountLaw FlipLaw LiteralFlips OtherValues TableDraws"
    ),
    "limes._rules.table_facts": "TableFactSample",
    "limes._rules.pairwise": "Incumbent Node SearchProblem",
    "limes._rules.perspective": "FreeQuadratic PerspectiveSearch Point Relaxation perspective_bound",
    "limes._rules.precision": (
        "FactSample FactSearch FactRows bernstein_bound betting_bound precision quantile_bound share_bound "
        "theorem_accuracy theorem_samples zero_sum_sets"
    ),
    "limes._rules.problem": (
        "PopulationProblem SampleProblem boxed hard_thresholding project projection summing_to"
    ),
    "limes._rules.rule": "standard_errors",
    "limes._rules.solvers": "SOLVERS branch_and_bound",
    "limes._show.decision": "letter_of",
    "limes._show.axes": "LOWERS RAISES UNKNOWN even_ticks ranks",
    "limes._show.inputs": "KINDS Outlines SIGNS gallery image_view pieces",
    "limes._show.series": "drawn_lanes",
    "limes._show.effects": "draw_effect draw_effects",
    "limes._show.plots": "Plots",
    "limes._threads": (
        "LRUCache _libraries in_this_thread in_threads one_blas_thread one_blas_thread_in_models "
        "user_blas_threads"
    ),
    "limes.compat.lime": "_tables:_limit",
    "limes.compat.lime._engines": "Limit distances",
    "limes.compat.lime.lime_text": "deletions",
    "limes.designs": "_product",
    "limes.designs._bins": "STRATEGIES bin_edges entropy_edges quantile_edges",
    "limes.designs._column": "IndicatorColumn SlopeColumn sliced",
    "limes.designs._gaussian": "GaussianPieces gaussian_area gaussian_moment",
    "limes.designs._joint": "JointFamily",
    "limes.designs._marginals": (
        "LAWS binned categorical marginals_from_bins of_values unbinned "
        "Atoms BinCells Levels Marginal marginal"
    ),
    "limes.designs._product": "Features FeatureTable ProductFamily Rows KeptRows",
    "limes.designs._stacks": "binned_together ends_of learn_means learn_sides",
    "limes.designs._weights": "BinWeights EuclideanWeights WEIGHTS named_weights",
    "limes.evaluate._measures": "compare_runs noisy_rows",
    "limes.models": "_identity _tree_rewriting",
    "limes.models._algebra": "over_switches combine map_outputs on_columns",
    "limes.models._calling": "caller",
    "limes.models._calling.caller": "CHECK_CALLS ModelCaller RowwisePredictions",
    "limes.models._calling.networks": "_modes evaluating",
    "limes.models._calling.outputs": (
        "FirstAnswers direct_question no_probabilities prediction_method resolve"
    ),
    "limes.models._feature_maps": (
        "Affine Codebook CurveMap LookupMap ModelColumn MonotoneMap StepMap _float_of _key_of "
        "identity_map then"
    ),
    "limes.models._folding": "Accepted Guard fold on_common_domains",
    "limes.models._identity": "WITNESSES same_objects state_of",
    "limes.models._images": (
        "Preprocess flat preprocess_like Composer Framing MaskedImage TensorComposer pixels_of"
    ),
    "limes.models._reading": "CannotRead Schema read read_form read_output tolerance_of",
    "limes.models.forms": "_base",
    "limes.models.forms._base": (
        "BlackBox Combination Linear Quadratic Reduced Sum SumOfProducts from_polynomial_features"
    ),
    "limes._names": "AmbiguousNameError Names place_of_each text_of",
    "limes.models._columns": "are_numbered fitted_names model_order other_columns",
    "limes.models.forms._linked": "MOST_CELLS as_margin",
    "limes.models.forms._links": "CURVES CURVES:NAMED_LINKS LINKS SQUARES ExponentialSum Link",
    "limes.models.forms._planes": "ORDERS copies_of plane_sum",
    "limes.models.forms._presence": "LARGEST_GROUP SharedWords Switches presence_products shared_words",
    "limes.models.forms._trees": "float32_threshold",
    "limes.models.readers": "READERS",
    "limes.models.readers.links": "matching_curve",
    "limes.models.readers.networks": "_row",
    "limes.scale": "_processes _stores _tables _stores:_locks _parts:_keys _sources:_cells",
    "limes.scale._parts": (
        "key_hashes part_bytes repeated_keys Folder Increment NOTHING PartRecord Tally run_name verify "
        "with_run"
    ),
    "limes.scale._processes": "_MOST_DEATHS _Search exit_text watch_peak",
    "limes.scale._sources": "Part Source Source:Inputs decimated",
    "limes.scale._stores": "StorePath checksum place_of write_whole",
    "limes.scale._summary": "versions_of",
    "limes.scale._tables": (
        "_MODULES Cluster Heartbeat check_memory engine_of explain_files pickled unpickled"
    ),
    "limes.scale._typed": "Unreadable typed",
    "limes.scale.spark": "check_java spark_context",
    "limes.surrogates": "least_squares",
}

_PLACES = {
    alias or name: (module, name)
    for module, names in NAMES.items()
    for name, _, alias in (entry.partition(":") for entry in names.split())
}


def __getattr__(alias: str) -> Any:
    if alias not in _PLACES:
        raise AttributeError(alias)
    module, name = _PLACES[alias]
    package = import_module(module)
    # a module of a package is an attribute only once it was imported
    return getattr(package, name) if hasattr(package, name) else import_module(f"{module}.{name}")
