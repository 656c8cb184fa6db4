"""How far the drop-in's numbers are from ``lime``'s: ``python -m benchmarks.drop_in.sizes``.

``lime``'s runs of `SAMPLES` are averaged over seeds and two calls each, so that what remains is little noise.
Of each row: the factor c for which c times the limit's coefficients is nearest to ``lime``'s; the largest
difference that it leaves; the standard deviation of one run; and what a second call of the same explainer
differs by. All but the factor are shares of the largest coefficient. Names of parts (``ties sparse``) renew
their figures alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from lime.lime_image import LimeImageExplainer
from lime.lime_tabular import LimeTabularExplainer
from lime.lime_text import LimeTextExplainer
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer, load_sample_image, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import readme
from benchmarks.data import DATA
from benchmarks.progress import say
from benchmarks.speed.cases import AbsentError
from benchmarks.text.cases import reviews
from limes.compat.lime import lime_image, lime_tabular, lime_text

SAMPLES, SEEDS, ROWS = 5000, 10, 3
# Quantiles of the distance of rows from the mean of a table
FAR = (0.5, 0.9, 0.99)
ALL = {"feature_selection": "none"}
WORDS = (50, 200)
# Reviews that vectorizers and classifiers are fitted to
TRAINING = 2000


Figures = dict[str, Any]


def measure(names: Sequence[str] = ()) -> Figures:
    """Figures of all parts, or of those named, several of coefficients; where data are absent, that."""
    figures: Figures = {}
    parts = (_bins, _slopes, _ties, _sparse, _texts, _one_word, _photographs, _segments, _from_one)
    for name, part in {part.__name__.strip("_"): part for part in parts}.items():
        if names and name not in names:
            continue
        say(f"sizes: {name}")
        try:
            figures |= part()
        except AbsentError as reason:
            figures[name] = str(reason)
    say("done\n")
    return figures


def _bins() -> Figures:
    wine, cancer = load_wine(return_X_y=True), load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(50, max_depth=6, random_state=0)
    return {
        "bins, wine, 13 columns, forest": _of_table(*wine, forest),
        "bins, breast cancer, 30 columns, forest": _of_table(*cancer, forest),
        "bins, breast cancer, 30 columns, logistic": _of_table(*cancer, _logistic()),
    }


def _slopes() -> Figures:
    X, y = load_breast_cancer(return_X_y=True)
    news = _numbers("online_news_popularity")
    tables = {
        "breast cancer": (X[:, :23], y),
        # counts of words, links and pictures have heavy tails
        "online news": (news.iloc[:, :23].to_numpy(float), news["target"] > news["target"].median()),
    }
    return {
        f"slopes, {name}, 23 columns, logistic, rows at {q:.0%} of the distance from the mean": _of_table(
            *table, _logistic(), far=q, discretize_continuous=False
        )
        for name, table in tables.items()
        for q in FAR
    }


def _ties() -> Figures:
    """Most pupils have the least of travel and drink, which is 1: a bin without width."""
    frame = _numbers("student_performance").select_dtypes("number")
    X, y = frame.drop(columns="target").to_numpy(float), frame["target"].to_numpy(float)
    tied = [j for j, column in enumerate(X.T) if column.min() == np.quantile(column, 0.25) != 0]
    models = {"forest": RandomForestRegressor(50, max_depth=6, random_state=0), "linear": LinearRegression()}
    return {
        f"bins without width, pupils, {len(tied)} columns, {name}": _of_table(
            X[:, tied], y, model, mode="regression"
        )
        for name, model in models.items()
    }


def _sparse() -> Figures:
    """Counts of words: lime multiplies by deviations where it should divide."""
    texts, stars = _reviews()
    counts = csr_matrix(CountVectorizer(min_df=40).fit_transform(texts), dtype=np.float64)
    model = LogisticRegression(max_iter=1000)
    name = f"sparse counts of reviews, {counts.shape[1]} columns, logistic"
    return {name: _of_table(counts, stars > 3, model, engine="lime")}


def _texts() -> Figures:
    predict = _opinion().predict_proba
    texts, _ = reviews()
    sizes = np.array([len(lime_text.IndexedString(text).inverse_vocab) for text in texts[TRAINING:]])
    figures = {}
    for size in WORDS:
        chosen = np.flatnonzero(np.abs(sizes - size) <= size / 20)[:ROWS]
        figures[f"reviews of {size} words, TF-IDF, logistic"] = _compared(
            [texts[TRAINING + i] for i in chosen],
            predict,
            int(size * 1.05) + 1,
            partial(LimeTextExplainer, **ALL),
            partial(lime_text.LimeTextExplainer, **ALL),
        )
    return figures


def _one_word() -> Figures:
    """The limit is f(the word) - f(no word)."""
    predict = _opinion().predict_proba
    both = {"lime": LimeTextExplainer, "limit": lime_text.LimeTextExplainer}
    return {
        f"the text 'great', {name}": float(
            kind(random_state=0).explain_instance("great", predict, num_samples=SAMPLES).local_exp[1][0][1]
        )
        for name, kind in both.items()
    }


def _photographs() -> Figures:
    """At lime's default of 1,000 samples."""
    images = [load_sample_image(name)[::4, ::4] for name in ("china.jpg", "flower.jpg")]
    sizes = [int(_superpixels(lime_image.LimeImageExplainer, image)) for image in images]
    ours = partial(lime_image.LimeImageExplainer, **ALL)
    call = {"hide_color": 0, "num_samples": 1000, "batch_size": 100}
    compared = _compared(images, _brightness, max(sizes), partial(LimeImageExplainer, **ALL), ours, **call)
    return {
        f"photographs of {sizes[0]} and {sizes[1]} superpixels, a logistic function of their light": compared
    }


def _segments() -> Figures:
    figures = {}
    for name in ("china.jpg", "flower.jpg"):
        photograph = load_sample_image(name)[::2, ::2][:200, :300]
        for kind, image in {
            "bytes": photograph,
            "doubles 0 to 255": photograph.astype("double"),
            "-1 to 1": photograph / 127.5 - 1,
        }.items():
            theirs = _superpixels(LimeImageExplainer, image)
            figures[f"superpixels, {name}, {kind}: lime"] = theirs
            for engine in ("lime", "limit"):
                ours = _superpixels(partial(lime_image.LimeImageExplainer, engine=engine), image)
                figures[f"superpixels, {name}, {kind}: engine {engine}"] = ours
    return figures


def _superpixels(kind: Callable[..., Any], image: Any) -> float:
    explanation = kind(random_state=0).explain_instance(image, _brightness, num_samples=2, top_labels=1)
    return float(np.unique(explanation.segments).size)


def _from_one() -> Figures:
    """Segments 1 to n: the last is never switched off by lime, and has no coefficient."""
    image = load_sample_image("flower.jpg")[::4, ::4][:96, :128]
    patches = 1 + 4 * (np.arange(96) // 24)[:, None] + np.arange(128) // 32
    call = {"segmentation_fn": lambda _: patches, "hide_color": 0, "top_labels": None, "num_samples": 2000}
    theirs = dict(
        LimeImageExplainer(random_state=0).explain_instance(image, _brightness, **call).local_exp[1]
    )
    ours = dict(lime_image.LimeImageExplainer().explain_instance(image, _brightness, **call).local_exp[1])
    total = sum(map(abs, ours.values()))
    return {
        "segments 1 to 16: share of the last one's coefficient in the sum of all": abs(ours[16]) / total,
        "segments 1 to 16: whether lime has it": float(16 in theirs),
    }


def _brightness(images: Any) -> Any:
    share = np.asarray(images)[:, ::4, ::4].mean(axis=(1, 2, 3), dtype=float)
    share = 1 / (1 + np.exp(-share / 255))
    return np.column_stack([1 - share, share])


# -- runs ----------------------------------------------------------------------------------------------------


def _numbers(name: str) -> pd.DataFrame:
    path = DATA / "tabular" / f"{name}.csv.gz"
    if not path.exists():
        raise AbsentError(f"{path.name} is not there; LIMES_DATA says where tables are")
    return pd.read_csv(path)


def _reviews() -> tuple[list[str], Any]:
    texts, stars = reviews()
    return texts[:TRAINING], stars[:TRAINING]


def _opinion() -> Any:
    texts, stars = _reviews()
    return make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000)).fit(texts, stars > 3)


def _logistic() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _of_table(
    X: Any, y: Any, model: Any, engine: str = "limit", far: float = np.nan, **options: Any
) -> dict[str, float]:
    model.fit(X, y)
    predict = model.predict if options.get("mode") == "regression" else model.predict_proba
    theirs = partial(LimeTabularExplainer, X, **ALL, **options)
    ours = partial(lime_tabular.LimeTabularExplainer, X, engine=engine, **ALL, **options)
    order = np.random.default_rng(0).permutation(X.shape[0])
    if np.isfinite(far):
        distance = (((X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)) ** 2).sum(axis=1)
        order = np.argsort(np.abs(distance - np.quantile(distance, far)))
    rows = [X[i] for i in order[:ROWS]]
    return _compared(rows, predict, X.shape[1], theirs, ours)


def _compared(
    rows: Sequence[Any], predict: Any, d: int, theirs: Any, ours: Any, **call: Any
) -> dict[str, float]:
    """Medians over rows, and the smallest factor."""
    call = {"num_features": d, "num_samples": SAMPLES, **call}
    sampled = np.array([_twice(theirs(random_state=seed), rows, predict, d, call) for seed in range(SEEDS)])
    limit = np.array([_twice(ours(random_state=seed), rows, predict, d, call) for seed in range(SEEDS)])
    factors, shares = [], []
    for i in range(len(rows)):
        used = np.isfinite(limit[0, 0, i]) & np.isfinite(sampled[0, 0, i])
        runs, own_runs = sampled[:, :, i, used], limit[:, :, i, used]
        mean, own_mean = runs.mean(axis=(0, 1)), own_runs.mean(axis=(0, 1))
        factor = mean @ own_mean / (own_mean @ own_mean)
        factors.append(factor)
        differences = (
            mean - factor * own_mean,
            runs.reshape(-1, used.sum()).std(axis=0, ddof=1),
            np.abs(runs[:, 0] - runs[:, 1]).mean(axis=0),
            own_runs[:, 0] - own_runs[:, 1],
        )
        shares.append([np.abs(part).max() / np.abs(own_mean).max() for part in differences])
    names = ("difference", "scatter of lime", "lime's second call", "the drop-in's second call")
    return {
        "factor": round(float(np.median(factors)), 4),
        "smallest factor": round(float(min(factors)), 4),
        **dict(zip(names, np.median(shares, axis=0).round(4).tolist(), strict=True)),
    }


def _twice(explainer: Any, rows: Sequence[Any], predict: Any, d: int, call: dict[str, Any]) -> Any:
    """Coefficients (2, rows, d) of one explainer's first and second call; NaN beyond a row's own features."""
    result = np.full((2, len(rows), d), np.nan)
    for i, row in enumerate(rows):
        for place in range(2):
            explanation = explainer.explain_instance(row, predict, **call)
            for j, value in explanation.local_exp[1]:
                result[place, i, j] = value
    return result


def text(figures: Figures) -> str:
    """Markdown: a table of coefficients, and one of other numbers."""
    coefficients = {name: value for name, value in figures.items() if isinstance(value, dict)}
    columns = list(next(iter(coefficients.values())))
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name, values in coefficients.items():
        lines.append(f"| {name} | {' | '.join(f'{value:.3g}' for value in values.values())} |")
    lines += ["", "| figure | |", "|---|---|"]
    for name, value in figures.items():
        if name not in coefficients:
            lines.append(f"| {name} | {value if isinstance(value, str) else f'{value:.3g}'} |")
    return "\n".join(lines)


if __name__ == "__main__":
    import sys
    import warnings

    warnings.simplefilter("ignore")
    measured = (readme.load("drop_in_sizes") if sys.argv[1:] else {}) | measure(sys.argv[1:])
    readme.save("drop_in_sizes", measured)
    readme.replace("sizes of differences", text(measured), by="benchmarks.drop_in.sizes")
