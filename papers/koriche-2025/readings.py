"""Koriche et al. 2025: twelve readings of the protocol beside the published numbers, in ``readings.json``.

    python papers/koriche-2025/readings.py

The paper says that literals are -1 and +1, and in a proof and an algorithm 0 and 1; its law may flip 27 % of
the literals, 12 % (‖x - z‖₁ of ±1 counts two a flip), or a number drawn from e^{-σj}; targets may be scaled
to [-1, 1] or [0, 1]. For each reading a network is trained, and CVX and IHT are solved as the paper writes
them, for w over {0, 1} rows, too. Nothing here is limes's: cvxpy, and numpy. Table 3's error, by 10-fold
cross-validation, for both literals and both targets.
"""

from __future__ import annotations

import json
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from laws import CountLaw, LiteralLaw
from sets import available, number, table
from tqdm.auto import tqdm

FOLDER = Path(__file__).parent
K, SPREAD, SAMPLES, ROWS = 7, 1.0, 1000, 2
# Sets of more literals, or rows, take minutes a network or program
_LITERALS, _TABLE = 130, 600
_STEPS = 100
LITERALS = {"±1": (-1.0, 1.0), "0/1": (0.0, 1.0)}
TARGETS = {"[-1, 1]": (-1.0, 1.0), "[0, 1]": (0.0, 1.0)}
LAWS = {
    "27 % flips": lambda d: LiteralLaw(d, SPREAD),
    "12 % flips": lambda d: LiteralLaw(d, 2 * SPREAD),
    "count": lambda d: CountLaw(d, SPREAD),
}


def main() -> None:
    """Write what all sets at hand give."""
    warnings.simplefilter("ignore")
    records = []
    for file in tqdm([file for file in available() if number(file, "mip") is not None]):
        signs, y, _ = table(file)
        if signs.shape[1] > _LITERALS or len(signs) > _TABLE:
            continue
        for (literals, values), (targets, (low, high)) in product(LITERALS.items(), TARGETS.items()):
            rows, answers = np.where(signs > 0, *values[::-1]), low + (high - low) * y
            one = {"set": file, "literals": literals, "targets": targets, "mse": _validated(rows, answers)}
            records.append(one | {"laws": _solved(rows, answers, values)})
    lines = ",\n".join(map(json.dumps, records))
    (FOLDER / "readings.json").write_text(f"[\n{lines}\n]\n")


def _network():
    from sklearn.neural_network import MLPRegressor

    return MLPRegressor(random_state=0)


def _validated(rows, answers) -> float:
    from sklearn.model_selection import KFold, cross_val_predict

    folds = KFold(10, shuffle=True, random_state=0)
    return float(f"{np.mean((cross_val_predict(_network(), rows, answers, cv=folds) - answers) ** 2):.3g}")


def _solved(rows, answers, values):
    """Mean errors in the sample of both solvers under each law."""
    from sklearn.model_selection import train_test_split

    train, test, train_answers, _ = train_test_split(rows, answers, random_state=0)
    predict = _network().fit(train, train_answers).predict
    result = {}
    for name, law in LAWS.items():
        errors = []
        for i in range(ROWS):
            x = test[np.random.default_rng(i).integers(len(test))]
            flips = law(x.size).flips(np.random.default_rng(i), SAMPLES)
            z = np.where(flips, sum(values) - x, x)
            f, target = predict(z), float(predict(x[None])[0])
            errors.append(
                [
                    np.sqrt(np.mean((z @ w - f) ** 2))
                    for w in (_convex(z, f, x, target), _iht(z, f, x, target))
                ]
            )
        result[name] = dict(zip(("cvx", "iht"), np.round(np.mean(errors, axis=0), 5).tolist(), strict=True))
    return result


def _convex(z, f, x, target):
    import cvxpy

    w = cvxpy.Variable(x.size)
    gram = cvxpy.psd_wrap(z.T @ z / len(z))
    loss = cvxpy.quad_form(w, gram) - 2 * (f @ z / len(z)) @ w
    held = [x @ w == target, cvxpy.norm1(w) <= K, cvxpy.norm_inf(w) <= 1]
    cvxpy.Problem(cvxpy.Minimize(loss), held).solve(solver=cvxpy.CLARABEL)
    return w.value


def _iht(z, f, x, target):
    """Algorithm 1, its best iterate; by steps of 1, and of 1/λ_max, where steps of 1 diverge on 0/1 rows."""
    gram, moments = z.T @ z / len(z), f @ z / len(z)
    best, least = None, np.inf
    for step in (1.0, 1.0 / np.linalg.eigvalsh(gram)[-1]):
        w = np.zeros(x.size)
        for _ in range(_STEPS):
            before, w = w, _projected(w + step * (moments - gram @ w), x, target)
            loss = w @ gram @ w - 2 * moments @ w
            if not np.isfinite(loss) or loss > 1e6:
                break
            if loss < least:
                best, least = w, loss
            if np.abs(w - before).max() < 1e-9:
                break
    return best


def _projected(w, x, target):
    """The nearest of all k-sparse v with v·x = y: the best split between the support of x and the rest."""
    inside, outside = np.flatnonzero(x), np.flatnonzero(x == 0)
    outside = outside[np.argsort(-np.abs(w[outside]))]
    best, least = None, np.inf
    for free in range(min(K - 1, outside.size) + 1):
        v = np.zeros(w.size)
        v[outside[:free]] = w[outside[:free]]
        v[inside] = x[inside] * _on_sum(w[inside] * x[inside], min(K - free, inside.size), target)
        distance = ((v - w) ** 2).sum()
        if distance < least:
            best, least = v, distance
    return best


def _on_sum(v, k, target):
    """The nearest k-sparse u with Σu = y: some of the largest entries, and of the smallest."""
    order, best, least = np.argsort(-v), None, np.inf
    for largest in range(k + 1):
        chosen = np.concatenate([order[:largest], order[v.size - (k - largest) :]])
        u = np.zeros(v.size)
        u[chosen] = v[chosen] - (v[chosen].sum() - target) / k
        distance = ((u - v) ** 2).sum()
        if distance < least:
            best, least = u, distance
    return best


if __name__ == "__main__":
    main()
