"""A model that answers differently for the same input is never exact, and every channel says so."""

from itertools import count

import numpy as np
import pytest

import limes
from internals import repetitions

GRID = {"segments": np.arange(8)[:, None] // 4 * 2 + np.arange(8)[None] // 4}
TABLE = np.random.default_rng(0).normal(size=(300, 3))
LEVELS = np.random.default_rng(0).integers(0, 2, size=(300, 3)).astype(float)
SENTENCE = "the model answered differently for the same input"


def noise(f):
    """Answers with fresh noise at every call."""
    rng = np.random.default_rng(1)
    return lambda x: f(x) + rng.normal(size=len(x)) * 0.2


def mask(f):
    """Return what a mask leaves is the same in all rows of a call."""
    rng = np.random.default_rng(1)
    return lambda x: f(x) * rng.uniform(0.5, 1.5)


def scaler(f):
    """A scaler is fitted to each batch."""
    return lambda x: (f(x) - f(x).mean()) / (f(x).std() + 0.1)


def turn(f):
    """Every second call answers otherwise."""
    turns = count()
    return lambda x: f(x) + 0.1 * (next(turns) % 2)


def place(f):
    """The answer depends on the row's place in its batch."""
    return lambda x: f(x) + 0.01 * np.arange(len(x))


def text(model, **options):
    return limes.TextExplainer(model(lambda t: np.array([s.count("good") * 0.3 for s in t])), **options)(
        "a good film indeed"
    )


def long_text(model):
    words = " ".join(f"w{i}" for i in range(16))
    return limes.TextExplainer(model(lambda t: np.array([0.3 * ("w3" in s) for s in t])), max_calls=512)(
        words
    )


def image(model):
    picture = np.random.default_rng(0).random((8, 8, 3))
    f = model(lambda images: np.asarray(images)[:, :4, :4].mean(axis=(1, 2, 3)))
    return limes.ImageExplainer(f, fill=0.0, **GRID)(picture)


def series(model):
    return limes.SeriesExplainer(model(lambda b: np.asarray(b)[:, :10].mean(axis=1)), count=4)(
        np.sin(np.arange(40.0))
    )


def table(model, rows=TABLE, **options):
    f = model(lambda x: np.asarray(x)[:, 0] * 1.0)
    return limes.TabularExplainer(f, rows, max_calls=1024, **options)(rows[:2])


EXPLAIN = {
    "text": text,
    "long text": long_text,
    "image": image,
    "series": series,
    "table": table,
    "levels": lambda model: table(model, LEVELS, categorical=["x0", "x1", "x2"]),
    "levels, own draws": lambda model: table(model, LEVELS, categorical=["x0", "x1", "x2"], bandwidth=0.3),
    "slopes": lambda model: table(model, bins=None),
    "joint": lambda model: table(model, law="joint"),
}
CHANGES = [noise, mask, scaler, turn, place]


@pytest.mark.parametrize("name", EXPLAIN)
@pytest.mark.parametrize("model", CHANGES)
def test_models_that_vary_are_never_exact_and_warned_of_everywhere(name, model):
    explanation = EXPLAIN[name](model)
    assert explanation.method == "sampled"
    for warnings in explanation.row_warnings:
        assert any(SENTENCE in text and "model.eval()" in text for text in warnings)
    assert (explanation.coefficients.standard_errors > 0).all()
    diagnosis = limes.diagnose(explanation, progress=False)
    assert "repetition" in {finding.kind for finding in diagnosis.findings}


def float32_sums(f):
    """Sums in single precision, in an order that depends on the size of the batch."""
    return lambda x: (f(x) * (1.0 + 3e-7 * (len(x) % 3))).astype(np.float32)


@pytest.mark.parametrize("name", EXPLAIN)
@pytest.mark.parametrize("model", [lambda f: f, float32_sums])
def test_rounding_is_no_other_answer(name, model):
    explanation = EXPLAIN[name](model)
    assert not any(SENTENCE in text for row in explanation.row_warnings for text in row)
    if name in ("text", "image", "series"):
        assert explanation.method == "exact"
    assert "repetition" not in {f.kind for f in limes.diagnose(explanation, progress=False).findings}


def counted(f):
    calls = []

    def model(x):
        calls.append(len(x))
        return f(x)

    return model, calls


def test_the_check_is_counted_and_runs_once():
    model, calls = counted(lambda t: np.array([s.count("good") * 0.3 for s in t]))
    explainer = limes.TextExplainer(model, contributions=False)
    first, *others = explainer(["a good film", "a good day", "good"])
    assert sum(calls) == first.model_calls + sum(other.model_calls for other in others)
    # three of the four sets that are asked about twice are among those that are left of all
    assert first.model_calls == 8 + 2**3 - 3
    assert [other.model_calls for other in others] == [2**3, 2]
    model, calls = counted(lambda x: x[:, 0])
    explainer = limes.TabularExplainer(model, TABLE, max_calls=1024, contributions=False)
    assert sum(calls) == explainer.pool_calls == 10
    assert explainer(TABLE[:3]).model_calls == 3  # the predictions
    assert sum(calls) == explainer.pool_calls + 3
    rows = np.random.default_rng(0).choice([-1.0, 1.0], size=(2, 6))
    model, calls = counted(lambda x: x[:, 0] / 2)
    explanation = limes.SparseExplainer(model, k=2)(rows)
    assert explanation.calls[0] - explanation.calls[1] == 8


def test_read_models_are_not_called_again():
    from sklearn.linear_model import LinearRegression

    explainer = limes.TabularExplainer(LinearRegression().fit(TABLE, TABLE[:, 0]), TABLE)
    assert explainer.pool_calls == explainer(TABLE[:2]).model_calls == 0


def test_results_do_not_depend_on_workers():
    texts = ["a good film", "a bad day", "good", "no good"]
    one, two = (
        limes.TextExplainer(lambda t: np.array([s.count("good") * 0.3 for s in t]))(texts, workers=workers)
        for workers in (1, 3)
    )
    assert [e.model_calls for e in one] == [e.model_calls for e in two]


def test_exact_is_refused():
    with pytest.raises(limes.exceptions.NotReadableError, match="repeats its answers"):
        text(noise, method="exact")


@pytest.mark.parametrize("model", [noise, mask])
@pytest.mark.parametrize("words", ["good", "good film", "a good film"])
def test_errors_cover_the_spread_of_answers(words, model):
    """Truth by enumeration: E f = 0.3 [good]; intervals of 60 explanations."""
    f = model(lambda texts: np.array([t.count("good") * 0.3 for t in texts]))
    truth = np.array([0.3 * (word == "good") for word in words.split()])
    runs = [limes.TextExplainer(f, max_calls=128)(words) for _ in range(60)]
    away = np.stack([e.coefficients.values[0] - truth for e in runs])
    errors = np.stack([e.coefficients.standard_errors[0] for e in runs])
    # coverage of 95 % in 60 runs is above 0.85 but for one run in a thousand
    assert (np.abs(away) <= 1.96 * errors + 1e-12).mean(axis=0).min() >= 0.85
    # and errors are not just large
    assert np.median(errors) <= 3.0 * away.std()


def test_r_squared_of_random_answers_is_that_of_their_mean():
    """f = z0 z1 plus noise: R² of E f by enumeration."""
    f = noise(lambda texts: np.array([2.0 * (("a" in t) and ("b" in t)) for t in texts]))
    exact = limes.TextExplainer(lambda texts: np.array([2.0 * (("a" in t) and ("b" in t)) for t in texts]))(
        "a b c"
    )
    runs = [limes.TextExplainer(f)("a b c") for _ in range(40)]
    away = np.array([run.fidelity[0] - exact.fidelity[0] for run in runs])
    errors = np.array([run.fidelity_errors[0] for run in runs])
    assert (np.abs(away) <= 1.96 * errors).mean() >= 0.8
    assert all(np.isfinite(run.additive_fidelity).all() for run in runs[:3])


@pytest.mark.parametrize(
    ("states", "budget", "expected"),
    [(2, 4096, 9), (4, 4096, 5), (16, 4096, 4), (1024, 4096, 4), (2048, 4096, 2)],
)
def test_states_are_repeated_as_often_as_the_budget_allows(states, budget, expected):
    assert repetitions(states, budget) == expected


def test_rules_and_maple_warn_of_varying_answers():
    rows = np.random.default_rng(0).choice([-1.0, 1.0], size=(2, 6))
    rule = limes.SparseExplainer(noise(lambda x: x[:, 0] / 2), k=2)(rows)
    maple = limes.MapleExplainer(noise(lambda x: x[:, 0]), TABLE)(TABLE[:2])
    for explanation in (rule, maple):
        assert all(any(SENTENCE in text for text in row) for row in explanation.row_warnings)


def test_an_answer_that_is_lost_does_not_lose_the_others():
    """The model fails in a repetition; the same call resumes with the answers so far."""
    sizes = []
    f = noise(lambda texts: np.array([t.count("good") * 0.3 for t in texts]))

    def failing(texts):
        sizes.append(len(texts))
        if len(sizes) == 7:
            raise OSError
        return f(texts)

    explainer = limes.TextExplainer(failing)
    with pytest.raises(limes.exceptions.ModelError):
        explainer("a good film indeed")
    before = sum(sizes)
    explanation = explainer("a good film indeed")
    assert explanation.method == "sampled"
    assert sum(sizes) - before < 64
