"""Public functions of `limes.theory` and `limes.evaluate` refuse unusable arguments by an InputError."""

import numpy as np
import pytest

import limes
from limes import evaluate, theory
from limes.designs import ProductDesign
from limes.exceptions import InputError

HUGE = 10**400
UNUSABLE = ["3", None, [1.0], np.array([1.0, 2.0]), [[1.0], [1.0, 2.0]], {}, 1 + 2j, HUGE, float("nan")]
TASK = evaluate.Task.of(lambda x: x[:, 0], [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [[1.0, 1.0]])
VALUES = [[1.0, 0.0]]


def calls(function, good, names):
    return [(function, {**good, name: value}, name) for name in names for value in UNUSABLE]


BOUNDS = {"tolerance": 0.1, "size": 10, "bins": 4, "bandwidth": 2.4, "bound": 1.0, "risk": 0.05}
SAMPLES = {"standard_errors": [0.02], "samples": 1000, "tolerance": 0.01, "confidence": 0.95}
SMOOTH = {"slopes": [1.0], "constant": 0.0, "instance": [0.1], "mean": [0.0], "std": 1.0, "bandwidth": 1.0}
LINK = {"generating": lambda z: np.ones_like(z), "lower": -1.0, "upper": 1.0, "error": 1e-12}
NUMBERS = [
    *calls(theory.theorem_samples, BOUNDS, BOUNDS),
    *calls(theory.clt_samples, SAMPLES, ("samples", "tolerance", "confidence")),
    *calls(theory.smooth_limit, {**SMOOTH, "bins": 4}, ("constant", "std", "bandwidth", "bins")),
    *calls(theory.expected_link, LINK, ("lower", "upper", "error")),
    *calls(evaluate.Removal, {}, ("kept",)),
    *calls(evaluate.Bins, {"task": TASK}, ("bandwidth",)),
]
NUMBERS = [(f, options, n) for f, options, n in NUMBERS if not (n == "bandwidth" and options[n] is None)]


@pytest.mark.parametrize(("function", "options", "name"), NUMBERS)
def test_numbers(function, options, name):
    with pytest.raises(InputError, match=name):
        function(**options)


ARRAYS = [
    *calls(theory.smooth_limit, SMOOTH, ("slopes", "instance", "mean")),
    *calls(theory.measured_errors, {"features": np.eye(6)[:, :2], "values": np.arange(6.0)}, ("values",)),
]


ARRAYS = [(f, options, name) for f, options, name in ARRAYS if options[name] is not UNUSABLE[2]]


@pytest.mark.parametrize(("function", "options", "name"), ARRAYS)
def test_arrays(function, options, name):
    with pytest.raises(InputError):
        function(**options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.robustness(3), "robustness needs a ProductDesign, got int"),
        (lambda: theory.measured_errors([[1.0], [2.0]] * 3, [1.0] * 6, [-1.0] * 6), "weights must be >= 0"),
        (lambda: theory.measured_errors([[1.0], [2.0]] * 3, [1.0] * 6, [0.0] * 6), "weights must be >= 0"),
        (lambda: theory.gaussian_bins([], 1.0), "one column at least"),
        (lambda: theory.expected_link(3, -1.0, 1.0), "generating must be a function"),
        (lambda: theory.expected_link(np.ones_like, -1.0, 1.0, link=["logistic"]), "link="),
        (lambda: evaluate.compare(3, TASK), "there are no explainers"),
        (lambda: evaluate.compare({"a": lambda X, seed: X}, 3), "task must be a limes.evaluate.Task"),
        (lambda: evaluate.fidelity(VALUES, 3), "task must be"),
        (lambda: evaluate.stability(lambda X, seed: X, 3), "task must be"),
        (lambda: evaluate.sensitivity(lambda X, seed: X, 3), "task must be"),
        (lambda: evaluate.stability(3, TASK), "explain must be a function"),
        (lambda: evaluate.stability(lambda X, seed: X, TASK, runs=2.5), "runs"),
        (lambda: evaluate.stability(lambda X, seed: X, TASK, k=True), "k must be"),
        (lambda: evaluate.stability(lambda X, seed: X, TASK, noise=HUGE), "noise"),
        (lambda: evaluate.fidelity(VALUES, TASK, neighbourhood=0), "neighbourhood must have a method draw"),
        (lambda: evaluate.precision([1.0]), "precision needs an explanation of a limes.SparseExplainer"),
        (lambda: evaluate.Attribution(HUGE), "values must be numbers"),
        (
            lambda: evaluate.Task.of(lambda x: x, [[0.0, 1.0], [1.0, 2.0]], [[0.0, 1.0]], output=[0, 1]),
            "a task is about one output",
        ),
        (lambda: ProductDesign.from_bins([[0, 1]], [[0.5]], [[1.0]], [0.2], HUGE), "bandwidth must be"),
        (lambda: limes.TabularExplainer(lambda x: x[:, 0], np.eye(3), ridge=HUGE), "ridge must be"),
    ],
)
def test_other_arguments(call, message):
    with pytest.raises(InputError, match=message):
        call()
