"""Probabilities of two and three classes behind sums, also of texts; means behind a log link; networks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fuzz.families import texts
from fuzz.families.columns import classes, number, pick, size, target
from fuzz.families.linear import few
from fuzz.options import Menu
from fuzz.script import Call, Raw, Setup, call
from fuzz.tables import TableCase
from fuzz.texts import TextCase

_LINEAR = (
    call("sklearn.linear_model.LogisticRegression"),
    call("sklearn.linear_model.LogisticRegression", C=100.0),
    call("sklearn.linear_model.LogisticRegressionCV"),
    call("sklearn.linear_model.SGDClassifier", loss="log_loss", random_state=0),
    call("sklearn.discriminant_analysis.LinearDiscriminantAnalysis"),
    call("sklearn.naive_bayes.GaussianNB"),
    call("sklearn.calibration.CalibratedClassifierCV", call("sklearn.svm.LinearSVC", random_state=0), cv=2),
)
_STUMPS = (
    call("sklearn.ensemble.GradientBoostingClassifier", max_depth=1, n_estimators=8, random_state=0),
    call("sklearn.ensemble.HistGradientBoostingClassifier", max_leaf_nodes=2, max_iter=8, min_samples_leaf=3),
    call("sklearn.ensemble.AdaBoostClassifier", n_estimators=6, random_state=0),
    call("sklearn.naive_bayes.BernoulliNB", binarize=0.3),
    call(
        "interpret.glassbox.ExplainableBoostingClassifier",
        interactions=0, max_rounds=20, outer_bags=2, n_jobs=1, random_state=0,
    ),
)  # fmt: skip
_PAIRS = (
    call(
        "interpret.glassbox.ExplainableBoostingClassifier",
        interactions=3, max_rounds=20, outer_bags=2, n_jobs=1, random_state=0,
    ),
    call(
        "interpret.glassbox.ExplainableBoostingClassifier",
        interactions=1, max_interaction_bins=6, max_rounds=20, outer_bags=1, n_jobs=1, random_state=0,
    ),
    call("sklearn.ensemble.GradientBoostingClassifier", max_depth=2, n_estimators=5, random_state=0),
    call("sklearn.ensemble.HistGradientBoostingClassifier", max_leaf_nodes=3, max_iter=4, min_samples_leaf=3),
    call("lightgbm.LGBMClassifier", num_leaves=3, n_estimators=4, min_child_samples=3, verbose=-1, n_jobs=1),
)  # fmt: skip
_MEANS = (
    call("sklearn.linear_model.PoissonRegressor"),
    call("sklearn.linear_model.GammaRegressor"),
    call("sklearn.linear_model.TweedieRegressor", power=1.5, link="log"),
)
_OUTPUTS = (None, "probability", 1)
_BAGS = (
    call(
        "sklearn.ensemble.BaggingClassifier",
        call("sklearn.linear_model.LogisticRegression"),
        3,
        random_state=0,
    ),
    call(
        "sklearn.ensemble.VotingClassifier",
        [
            ("a", call("sklearn.linear_model.LogisticRegression")),
            ("b", call("sklearn.naive_bayes.GaussianNB")),
        ],
        voting="soft",
    ),
)
_S, _LINKS = "statsmodels.api.", "statsmodels.genmod.families.links."
_RESULTS = ("OLS", "Logit", "Probit", "Poisson", "Binomial", "CLogLog", "Gamma", "Gaussian")


def _scaled(rng: Any, model: Call) -> Call:
    scaler = pick(rng, (None, "StandardScaler", "RobustScaler"))
    if scaler is None:
        return model
    return Call("sklearn.pipeline.make_pipeline", (call(f"sklearn.preprocessing.{scaler}"), model))


def _task(rng: Any) -> tuple[Call, str, tuple[Any, ...]]:
    if rng.random() < 0.25:
        return _scaled(rng, pick(rng, _MEANS)), f"np.exp(np.clip({target(rng)}, -3, 3))", (None,)
    return _scaled(rng, pick(rng, (*_LINEAR, *_BAGS))), _few_classes(rng), _OUTPUTS


def _few_classes(rng: Any) -> str:
    """Two behind a link, three behind a softmax."""
    return classes(rng, int(rng.choice([2, 2, 3])))


def plain(rng: Any, seed: int) -> TableCase:
    """Smooth laws for one or two columns, laws of points for three."""
    model, y, outputs = _task(rng)
    if rng.random() < 0.4:
        setup = Setup(seed, size(rng, 30, 120), few(rng, 3), y, model)
        return TableCase(model.short, setup, Menu(outputs, laws=("empirical",)), "atoms")
    columns = tuple(number(rng, odd=False) for _ in range(int(rng.choice([1, 2]))))
    return TableCase(model.short, Setup(seed, size(rng), columns, y, model), Menu(outputs), "smooth", 0.5)


def stumps(rng: Any, seed: int) -> TableCase:
    """Steps behind a link, under laws of points."""
    model = pick(rng, _STUMPS)
    setup = Setup(seed, size(rng, 30, 120), few(rng, 3), _few_classes(rng), model)
    return TableCase(model.short, setup, Menu(_OUTPUTS, laws=("empirical",)), "atoms")


def pairs(rng: Any, seed: int) -> TableCase:
    """Pairs of columns behind a link: under laws of points, or steps under any law."""
    model = pick(rng, _PAIRS)
    if rng.random() < 0.5:
        setup = Setup(seed, size(rng, 30, 120), few(rng, 3), classes(rng, 2), model)
        return TableCase(f"{model.short}: pairs", setup, Menu(_OUTPUTS, laws=("empirical",)), "atoms")
    columns = tuple(number(rng) for _ in range(2))
    setup = Setup(seed, size(rng), columns, classes(rng, 2), model)
    return TableCase(f"{model.short}: pairs", setup, Menu(_OUTPUTS), "steps")


def results(rng: Any, seed: int) -> TableCase:
    """Results of statsmodels, under laws of points and smooth ones."""
    name = pick(rng, _RESULTS)
    families = "statsmodels.genmod.families."
    family = {
        "Binomial": call(f"{families}Binomial"),
        "CLogLog": call(f"{families}Binomial", call(f"{_LINKS}CLogLog")),
        "Gamma": call(f"{families}Gamma", call(f"{_LINKS}Log")),
        "Gaussian": call(f"{families}Gaussian"),
    }.get(name)
    options = {} if family is None else {"family": family}
    model = Call(_S + ("GLM" if family else name), (Raw("y"), Raw("X")), options)
    y = classes(rng, 2, texts=False)
    if name in ("OLS", "Poisson", "Gamma", "Gaussian"):
        y = f"np.exp(np.clip({target(rng)}, -3, 3))"
    fit = "disp=0" if name in ("Logit", "Probit", "Poisson") else ""
    case = _either(rng, seed, model, y, (None,))
    return replace(case, reader=f"statsmodels {name}", setup=replace(case.setup, fit=fit))


def networks(rng: Any, seed: int) -> TableCase:
    """One hidden layer, smooth enough for the oracle's panels, and Fourier features."""
    activation = pick(rng, ("tanh", "logistic", "identity"))
    options = {
        "hidden_layer_sizes": (4,),
        "activation": activation,
        "solver": "lbfgs",
        "max_iter": 40,
        "alpha": 1.0,
    }
    if rng.random() < 0.3:
        features = call("sklearn.kernel_approximation.RBFSampler", gamma=0.1, n_components=20, random_state=0)
        head = call("sklearn.linear_model.Ridge")
        model = Call("sklearn.pipeline.make_pipeline", (features, head))
        return _either(rng, seed, model, target(rng), (None,))
    if rng.random() < 0.5:
        model = Call("sklearn.neural_network.MLPRegressor", (), options | {"random_state": 0})
        return _either(rng, seed, _scaled(rng, model), target(rng), (None,))
    model = Call("sklearn.neural_network.MLPClassifier", (), options | {"random_state": 0})
    outputs = _OUTPUTS if activation == "identity" else ("margin",)
    return _either(rng, seed, model, classes(rng, 2), outputs)


def _either(rng: Any, seed: int, model: Call, y: str, outputs: tuple[Any, ...]) -> TableCase:
    """Laws of points for three columns, smooth laws for one or two."""
    if rng.random() < 0.5:
        setup = Setup(seed, size(rng, 30, 120), few(rng, 3), y, model)
        return TableCase(model.short, setup, Menu(outputs, laws=("empirical",)), "atoms")
    columns = tuple(number(rng, odd=False) for _ in range(int(rng.choice([1, 2]))))
    return TableCase(model.short, Setup(seed, size(rng), columns, y, model), Menu(outputs), "smooth", 0.4)


_WORD_HEADS = (
    call("sklearn.linear_model.LogisticRegression"),
    call("sklearn.linear_model.LogisticRegression", C=10.0),
    call("sklearn.naive_bayes.MultinomialNB"),
    call("sklearn.naive_bayes.ComplementNB"),
    call("sklearn.naive_bayes.BernoulliNB"),
    call("sklearn.linear_model.SGDClassifier", loss="log_loss", random_state=0),
    call("sklearn.calibration.CalibratedClassifierCV", call("sklearn.svm.LinearSVC", random_state=0), cv=2),
)


def words(rng: Any, seed: int) -> TextCase:
    """Probabilities of texts: counts, TF-IDF without a norm, and with the l2 norm."""
    name = pick(rng, ("CountVectorizer", "TfidfVectorizer", "TfidfVectorizer"))
    options: dict[str, Any] = {"norm": pick(rng, (None, "l2"))} if name == "TfidfVectorizer" else {}
    if rng.random() < 0.2:
        options["binary"] = True
    if rng.random() < 0.2:
        options["ngram_range"] = (1, 2)
    vectorizer = Call(f"sklearn.feature_extraction.text.{name}", (), options)
    case = texts.text(rng, seed)
    model = Call("sklearn.pipeline.make_pipeline", (vectorizer, pick(rng, _WORD_HEADS)))
    setup = replace(case.setup, model=model, target=texts.LIKED)
    return TextCase(f"{name}, {model.args[1].short}: probability", setup, _OUTPUTS, case.words)
