"""The paper's explainers and this library's at one row, by public calls, and their errors.

A rule is one call ``limes.SparseExplainer(...)(row)``: it draws m rows of the law, solves for w over w·x =
f(x), and its certificate has the errors on those rows and on fresh ones. LIME and MAPLE do not know the law,
and are evaluated on rows that ``laws.py`` draws.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from time import process_time

import numpy as np
from laws import LAWS, precision

import limes

# The paper's solvers, and this library's own: the optimum of the law itself, for E[s f] from a sample, from
# one ten times as large, and from the network's weights ("population", under the literal law)
SOLVERS = {
    "cvx": "convex",
    "optimum": "branch_and_bound",
    "iht": "hard_thresholding",
    "projection": "projection",
    "projection_10": "projection",
    "population": "projection",
}
# The paper's constraint of MIP and CVX; Algorithm 2 has none
BOXES = {"cvx": 1.0, "optimum": 1.0}
# Literals up to which the convex solver is asked
_CONVEX = 500
# Background of MAPLE's forest: more rows take minutes and change little
_MAPLE_ROWS = 2000
# Literals up to which precision is reported (Table 2)
LOW = 24
# Weights below it are the convex solver's roundings
_NONZERO = 1e-6


@dataclass(frozen=True)
class Setting:
    """The law, sizes and limits of a rule."""

    law: str
    k: int
    spread: float
    samples: int
    fresh: int
    limit: float
    seed: int


def rule(task, x, method, setting):
    """One explanation of the paper's form, or by limes's solver; None where the method cannot give one."""
    if (method == "cvx" and x.size > _CONVEX) or (method == "population" and setting.law != "literal"):
        return None
    box = BOXES.get(method)
    if box is not None and abs(task.predict(x[None])[0]) > setting.k * box:
        return None  # k weights within the box cannot add up to the prediction
    search = {"time_limit": setting.limit} if method == "optimum" else {}
    if method.startswith("projection"):
        search = {"method": "sampled"}
    explainer = limes.SparseExplainer(
        task.predict,
        solver=SOLVERS[method],
        k=setting.k,
        intercept=False,
        box=box,
        law=setting.law,
        spread=setting.spread,
        samples=setting.samples * (10 if method == "projection_10" else 1),
        fresh=setting.fresh,
        rng=setting.seed,
        **search,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explanation = explainer(x[None], progress=False)
    return None if method == "population" and explanation.method != "exact" else explanation


def record(task, x, method, setting):
    """Errors of a rule; seconds are the processor's, of the whole call with its certificate."""
    began = process_time()
    explanation = rule(task, x, method, setting)
    if explanation is None:
        return None
    seconds, certificate = process_time() - began, explanation.certificate
    w = explanation.coefficients.values[0]
    errors = {
        "fresh_rmse": float(np.sqrt(certificate.fresh_fidelity)),
        "nonzero": int((np.abs(w) > _NONZERO).sum()),
        "constant": float(explanation.coefficients.intercepts[0]),
        "off_plane": float(abs(w @ x - explanation.predictions[0])),
        "seconds": seconds,
    }
    if method != "population":  # it has no sample
        errors["rmse"] = float(np.sqrt(certificate.fidelity))
    if x.size <= LOW and method != "cvx":
        errors["precision"] = certificate.precision
    if method == "optimum":
        proof = {"proved": certificate.proved, "gap": certificate.gap, "nodes": certificate.nodes}
        return {**errors, **proof}
    return errors


@dataclass(frozen=True, eq=False)
class Answer:
    """A baseline's explanation b + u·s of the signs s = z∘x."""

    u: np.ndarray
    intercept: float
    seconds: float

    def rmse(self, signs, values):
        """Root mean squared error on rows."""
        return float(np.sqrt(np.mean((signs @ self.u + self.intercept - values) ** 2)))

    def record(self, task, x, setting, *, with_precision):
        """Errors on m rows of the law, and on fresh ones."""
        law = LAWS[setting.law](x.size, setting.spread)
        rng = np.random.default_rng(setting.seed)
        rows, fresh = (drawn(law, task, x, count, rng) for count in (setting.samples, setting.fresh))
        errors = {
            "rmse": self.rmse(*rows),
            "fresh_rmse": self.rmse(*fresh),
            "nonzero": int((np.abs(self.u) > _NONZERO).sum()),
            "seconds": self.seconds,
        }
        if with_precision and x.size <= LOW:
            errors["precision"] = precision(law, task.predict, x, self.u, float(task.predict(x[None])[0]))
        return errors


def drawn(law, task, x, rows, rng):
    """Signs (m, d) and the network's answers (m,) of rows around x."""
    flips = law.flips(rng, rows)
    return 1.0 - 2.0 * flips, task.predict(np.where(flips, -x, x))


class Lime:
    """lime's explanation b0 + Σ b_j 1[literal j as at x], as coefficients of ±1 without its intercept."""

    def __init__(self, task):
        self._task = task

    def answer(self, x, k):
        """Return the explanation of a row; a new explainer, so that numbers depend on the row alone."""
        from lime.lime_tabular import LimeTabularExplainer

        began = process_time()
        explainer = LimeTabularExplainer(self._task.train, mode="regression", random_state=0)
        explanation = explainer.explain_instance(x, self._task.predict, num_features=k)
        u = np.zeros(x.size)
        for j, b in explanation.local_exp[1]:
            u[j] = 0.5 * b
        return Answer(u, 0.0, process_time() - began)


class Maple:
    """MAPLE; it keeps its intercept."""

    def __init__(self, task):
        self._explainer = limes.MapleExplainer(task.predict, task.train[:_MAPLE_ROWS], rng=0)

    def answer(self, x):
        """Return the explanation of a row."""
        began = process_time()
        explanation = self._explainer(x[None])
        seconds = process_time() - began
        return Answer(
            explanation.coefficients.values[0] * x, float(explanation.coefficients.intercepts[0]), seconds
        )
