"""The one door of tests to private names: one that moves changes this file, and no test.

Modules are loaded when one of their names is: a test needs no library that it does not use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Names by module; "name:alias" where two modules have the same one
NAMES = {
    "limes._cli.watching": "rows_are_supervised watched",
    "limes.models.forms": "_base",
    "limes._diagnostics": "diagnosis finding",
    "limes": "_cli _bars _threads",
    "limes._app": "server server:launch",
    "limes._app.desk": "Desk",
    "limes._app.server": "application serve",
    "limes._arrays": "column_stds mean_and_std power_of_two",
    "limes._checks": "MissingLibraryError",
    "limes._cli": "files app program",
    "limes._cli.files": "features_of output_of read_table",
    "limes._diagnostics.alignment": "Alignment",
    "limes._diagnostics.bandwidth": "DRIFT FIDELITY NOISE grid",
    "limes._diagnostics.cancellation": "Profile",
    "limes._diagnostics.dependence": "Dependence Outside _most_correlated _subsample",
    "limes._diagnostics.edges": "Edge",
    "limes._diagnostics.finding": "Finding RowOutput",
    "limes._diagnostics.context": "Estimate",
    "limes._diagnostics.summary": "GUARANTEE greedy_pick largest_features",
    "limes._expectations": "exact exchangeable word_waves forest moments one_hot spread tfidf weighted_rows",
    "limes._expectations.controls": "CONTROLS control no_control process",
    "limes._expectations.controls.cell_basis": "CellBasis",
    "limes._expectations.controls.control": (
        "ControlMoments PENALTIES ZeroControl if_better_than_linear leave_one_out_errors "
    ),
    "limes._expectations.controls.kernel": "switch_kernels",
    "limes._expectations.controls.logistic": "logistic_control",
    "limes._expectations.controls.network": "Units",
    "limes._expectations.controls.odds": "roots_of_weights",
    "limes._expectations.controls.process": "Covariance gaussian_process",
    "limes._expectations.controls.tables": "MarginControl tree_control",
    "limes._expectations.crossfit": "additive network",
    "limes._expectations.exact": "ExactExpectation",
    "limes._expectations.explained": "CellMoments ExplainedRows cell_codes",
    "limes._expectations.forest": "ForestExpectation",
    "limes._expectations.joint_effects": "JointEffects",
    "limes._expectations.link_variance": "link_variance",
    "limes._expectations.linked": "LinkedExpectation",
    "limes._expectations.linked_norms": "PANEL_ERROR functions nodes_of panel_nodes",
    "limes._expectations.linked_words": "_of_margin",
    "limes._expectations.moments": "MomentCache Moments explain_rows",
    "limes._expectations.of_forms": "exact_expectation",
    "limes._expectations.one_hot": "pair_estimate",
    "limes._expectations.pool": "Pool SEQUENCES SMALLEST pool_sizes",
    "limes._expectations.pooled": "PooledExpectation",
    "limes._expectations.repeated": "repetitions",
    "limes._expectations.residual": "Clusters FeatureSupport ResidualFit",
    "limes._expectations.rule_of_three": "AnswerStatistics",
    "limes._expectations.sampled": "SampledExpectation",
    "limes._expectations.sampling": "Sampling Tolerance",
    "limes._expectations.simulated": "SimulatedControl SimulatedLaw",
    "limes._expectations.softmax": "SoftmaxExpectation",
    "limes._expectations.summed": "SummedExpectation envelope",
    "limes._expectations.weighted": "NormalEquations PoolSample WeightedFits",
    "limes._expectations.weighted_rows": "WeightedRows",
    "limes._expectations.word_pairs": "largest_pairs",
    "limes._explainers.parts.image": "filled filler read_image",
    "limes._explainers.parts.text": "sentences",
    "limes._explainers.sampling_warnings": "RARE sampling_warnings",
    "limes._explainers.tables": "additive:tables_additive fits",
    "limes._explainers.tables.laws": "number_texts",
    "limes._explainers.tables.suggestion": "_WORTH",
    "limes._explainers.tables.table": "Table",
    "limes._explainers.verification": "Probe TABLE_DRAWS check_draws product_rows",
    "limes._explanation": "Explanation UnknownNameError",
    "limes._explanation.fit": "Effect EffectAxes Effects",
    "limes._explanation.json": "from_data_url labels_from_data_url labels_to_data_url to_data_url",
    "limes._explanation.view": "bar_units fit_remark is_poor output_title view_row",
    "limes._explanation.wording": (
        "cell count difference error estimate number one_line shorten signed_column "
    ),
    "limes._functions": (
        "Bump Decay Filled Identity Interval Lookup Polynomial Power Shape SmoothFunctions Stacked Step "
    ),
    "limes._maple": "WeightedMoments",
    "limes._pipeline": "Pipeline",
    "limes._rules": "model:sparse_model pairwise rule:_sparse_pipeline solvers:search",
    "limes._rules.neighbourhood": "ColumnChanges FlipLaw LiteralFlips OtherValues",
    "limes._rules.pairwise": "Node",
    "limes._rules.perspective": "FreeQuadratic PerspectiveSearch Point Relaxed perspective_bound",
    "limes._rules.precision": ("bernstein_bound precision theorem_accuracy theorem_samples zero_sum_sets "),
    "limes._rules.problem": (
        "PopulationProblem SampleProblem boxed hard_thresholding project projection summing_to "
    ),
    "limes._rules.rule": "standard_errors",
    "limes._rules.solvers": "SOLVERS branch_and_bound",
    "limes._show.axes": "LOWERS RAISES UNKNOWN",
    "limes._show.effects": "draw_effect draw_effects",
    "limes._show.images": "Outlines gallery image_view",
    "limes._show.rows": "_ranks",
    "limes._show.series": "drawn_lanes",
    "limes._show.texts": "pieces",
    "limes._threads": (
        "LRUCache _libraries in_threads one_blas_thread one_blas_thread_in_models user_blas_threads "
    ),
    "limes._variance": "is_constant r_squared",
    "limes.compat.lime": "_tables:_limit",
    "limes.compat.lime._engines": "exchangeable_limit:ExchangeableLimit distances",
    "limes.compat.lime.lime_text": "deletions",
    "limes.designs": "_product",
    "limes.designs._bins": "bin_edges entropy_edges quantile_edges",
    "limes.designs._column": "IndicatorColumn SlopeColumn",
    "limes.designs._gaussian": "GaussianPieces gaussian_area gaussian_moment normal_quantile",
    "limes.designs._joint": "JointFamily",
    "limes.designs._marginals": (
        "LAWS Atoms BinCells Levels Marginal binned categorical marginal marginals_from_bins unbinned"
    ),
    "limes.designs._product": "Features ProductFamily Rows",
    "limes.designs._weights": "BinWeights EuclideanWeights named_weights",
    "limes.evaluate._repetition": "compare_runs noisy_rows",
    "limes.models": "_tree_rewriting",
    "limes.models._algebra": "over_switches combine map_outputs on_columns",
    "limes.models._calling.caller": "CHECK_CALLS ModelCaller RowwisePredictions",
    "limes.models._calling.methods": "_modes direct_question evaluating prediction_method",
    "limes.models._calling.networks": "Preprocess flat preprocess_like",
    "limes.models._calling.outputs": "resolve",
    "limes.models._folding.feature_maps": (
        "Affine Codebook CurveMap LookupMap ModelColumn MonotoneMap Pointwise StepMap _float_of _key_of "
        "identity_map then"
    ),
    "limes.models._folding.fold": "fold on_common_domains",
    "limes.models._folding.guards": "Accepted Guard",
    "limes.models._identity": "state_of",
    "limes.models._images": "Composer MaskedImage TensorComposer",
    "limes.models._inverse_links": "matching_curve",
    "limes.models._pictures": "Framing pixels_of",
    "limes.models._reading": "CannotRead Schema read read_form read_output tolerance_of",
    "limes.models.forms._activations": "CURVES",
    "limes.models.forms._reducible": "Linear Quadratic from_polynomial_features",
    "limes.models.forms._base": "BlackBox Combination Reduced Sum SumOfProducts",
    "limes.models.forms._margins": "MOST_CELLS as_margin",
    "limes.models.forms._links": "LINKS SQUARES",
    "limes.models.forms._presence": "LARGEST_GROUP SharedWords Switches presence_products shared_words",
    "limes.models.forms._softmax": "COPIES plane_sum",
    "limes.models.forms._trees": "float32_threshold",
    "limes.models.readers": "READERS",
    "limes.models.readers.onnx": "_row",
    "limes.scale": "_cells _keys _stores _stores:_locks",
    "limes.scale._cells": "Unreadable typed",
    "limes.scale._keys": "key_hashes repeated_keys",
    "limes.scale._processes": "_MOST_DEATHS _Search exit_text",
    "limes.scale._spark_context": "check_java spark_context",
    "limes.scale._parts": "Folder NOTHING PartRecord Tally run_name verify with_run",
    "limes.scale._sources": "Part Source Source:Inputs decimated",
    "limes.scale._stores": "checksum place_of write_whole",
    "limes.scale._tables": "Cluster Heartbeat engine_of explain_files",
    "limes.scale._work": "Work pickled",
    "limes.surrogates._linear": "least_squares",
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
