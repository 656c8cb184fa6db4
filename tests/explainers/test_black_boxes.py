"""Black boxes in practice: models that fail, are interrupted, are remote, or are stopped early."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import limes
from effort import repeats
from internals import CHECK_CALLS, WITNESSES, Sampling, sampling_warnings
from limes.exceptions import InputError, Interrupted, ModelError
from limes.surrogates import Surrogate


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def network(diabetes):
    X, y = diabetes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(
            StandardScaler(), MLPRegressor(hidden_layer_sizes=(20, 10), max_iter=200, random_state=0)
        )
        return model.fit(X, y)


class Counted:
    """A callable that records its batches; ``fault`` may change an answer or raise."""

    def __init__(self, model, fault=None):
        self.model, self.fault, self.batches = model, fault, []

    def __call__(self, table):
        self.batches.append(table)
        answer = self.model.predict(table)
        return answer if self.fault is None else self.fault(len(self.batches), answer)

    @property
    def rows(self):
        return pd.concat(self.batches)


def options(**changes):
    """Options with which each row has its own calls, 512 beside those for checks and its prediction."""
    return {"max_calls": 558, "control": "additive", "batch_size": 100, "weights": "euclidean", **changes}


# -- the same answer -----------------------------------------------------------------------------------------


def test_batches_workers_and_order_change_nothing(diabetes, network):
    X, _ = diabetes
    rows = X.iloc[:4]
    whole = limes.TabularExplainer(network.predict, X, **options(batch_size=4096))(rows)
    for size in (37, 256):
        other = limes.TabularExplainer(network.predict, X, **options(batch_size=size))
        for workers in (1, 2):
            explanation = other(rows, workers=workers)
            assert explanation.coefficients.values == pytest.approx(
                whole.coefficients.values, rel=1e-9, abs=1e-9
            )
            assert explanation.coefficients.standard_errors == pytest.approx(
                whole.coefficients.standard_errors, rel=1e-9, abs=1e-9
            )
    backwards = limes.TabularExplainer(network.predict, X, **options(batch_size=4096))(rows.iloc[::-1])
    assert np.array_equal(backwards.coefficients.values[::-1], whole.coefficients.values)
    one = limes.TabularExplainer(network.predict, X, **options(max_calls=64, batch_size=1))(rows.iloc[:1])
    many = limes.TabularExplainer(network.predict, X, **options(max_calls=64))(rows.iloc[:1])
    assert one.coefficients.values == pytest.approx(many.coefficients.values, rel=1e-9, abs=1e-9)


def test_no_row_is_predicted_twice(diabetes):
    """Categories alone have few states: equal perturbed rows are one call."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.choice(list("ab"), (200, 4)), columns=list("wxyz"))
    tables = []

    def model(table):
        tables.append(table)
        return (table == "a").to_numpy().sum(axis=1) ** 2.0

    explainer = limes.TabularExplainer(model, X, max_calls=512, contributions=False)
    before = len(tables)
    explainer(X.iloc[:1])
    # rows that are asked again, and the explained one
    perturbed = pd.concat(tables[before + 2 :])
    calls = explainer.pool_calls - CHECK_CALLS - 2 - WITNESSES
    assert len(perturbed) == len(perturbed.drop_duplicates()) == calls <= 16


# -- what goes wrong -----------------------------------------------------------------------------------------


def fails_at(batch, times=1):
    def fault(count, answer):
        if batch <= count < batch + times:
            raise ConnectionError("the service did not answer")
        return answer

    return fault


def test_a_pool_that_is_cut_short_states_its_own_limit(diabetes):
    """It named 4,096 calls where the pool of a narrow table ends at 2,048."""
    X, _ = diabetes
    n_rows = 0

    def model(table):
        nonlocal n_rows
        n_rows += len(table)
        if n_rows > 1500:
            raise ConnectionError("the service did not answer")
        return np.sin(3 * table["bmi"]) * table["s5"] * table["bp"]

    with pytest.raises(ModelError) as failure:
        limes.TabularExplainer(model, X, contributions=False)(X.iloc[:2], progress=False)
    text = "stopped after 1,024 of at most 2,048 model calls; explain the row again to go on"
    assert all(text in row for row in failure.value.partial.row_warnings)


def test_a_callable_that_fails_in_the_middle_loses_nothing(diabetes, network):
    X, _ = diabetes
    # four batches ask for a few rows at the start, one for a few again, one for the rows themselves; each row
    # then takes six
    model = Counted(network, fails_at(6 + 6 + 4))
    explainer = limes.TabularExplainer(model, X, contributions=False, **options())
    with pytest.raises(ModelError, match=r"ConnectionError.*2 of 3 rows.*continue") as failure:
        explainer(X.iloc[:3], progress=False)
    assert isinstance(failure.value.__cause__.__cause__, ConnectionError)
    pd.testing.assert_frame_equal(failure.value.batch, model.batches[-1])
    partial = failure.value.partial
    assert len(partial) == 2  # the second row from its first 256 calls
    assert not partial.row_converged[1]
    assert not any("stopped after" in text for text in partial.row_warnings[0])
    assert "stopped after" in partial.row_warnings[1][0]
    calls = len(model.batches)
    result = explainer(X.iloc[:3], progress=False)
    clean = limes.TabularExplainer(network.predict, X, contributions=False, **options())(
        X.iloc[:3], progress=False
    )
    assert np.array_equal(result.coefficients.values, clean.coefficients.values)
    assert np.array_equal(result.coefficients.values[0], partial.coefficients.values[0])
    # a few rows again, the rows themselves, three of six batches of the second row, six of the third
    assert len(model.batches) - calls == 2 + 3 + 6


def test_retries_are_the_users_to_decide(diabetes, network):
    X, _ = diabetes
    seen = []

    def patient(error, attempt):
        seen.append((type(error), attempt))
        return 0.0 if attempt < 3 else None

    model = Counted(network, fails_at(7, times=2))
    its = options(contributions=False)
    result = limes.TabularExplainer(model, X, retry=patient, **its)(X.iloc[:1])
    assert seen == [(ConnectionError, 1), (ConnectionError, 2)]
    clean = limes.TabularExplainer(network.predict, X, **its)(X.iloc[:1])
    assert np.array_equal(result.coefficients.values, clean.coefficients.values)
    seen.clear()
    gone = Counted(network, fails_at(7, times=100))
    with pytest.raises(ModelError, match="ConnectionError"):
        limes.TabularExplainer(gone, X, retry=patient, **options())(X.iloc[:1])
    assert len(seen) == 3


def test_a_wrong_answer_is_not_tried_again(diabetes, network):
    X, _ = diabetes

    def fault(count, answer):
        if count == 7:
            answer[17] = np.nan
        return answer

    explainer = limes.TabularExplainer(Counted(network, fault), X, retry=lambda *_: 0.0, **options())
    with pytest.raises(ModelError, match="nan for row 17 of a batch of 100") as failure:
        explainer(X.iloc[:1])
    assert failure.value.batch.shape == (100, 10)


@pytest.mark.parametrize("workers", [1, 2])
def test_interrupted_by_the_user(diabetes, network, workers):
    X, _ = diabetes

    pressed = []

    def fault(count, answer):
        if count >= 5 + 6 + 6 + 5 and not pressed:
            pressed.append(count)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
        return answer

    model = Counted(network, fault)
    explainer = limes.TabularExplainer(model, X, contributions=False, **options())
    with pytest.raises(KeyboardInterrupt, match="of 4 rows") as stop:
        explainer(X.iloc[:4], progress=False, workers=workers)
    assert isinstance(stop.value, Interrupted)
    assert stop.value.partial is not None
    result = explainer(X.iloc[:4], progress=False)
    clean = limes.TabularExplainer(network.predict, X, contributions=False, **options())(
        X.iloc[:4], progress=False
    )
    assert np.array_equal(result.coefficients.values, clean.coefficients.values)
    # ten rows at the start, the four rows twice, and others again; at most one batch was asked for twice
    assert sum(map(len, model.batches)) <= 10 + 2 * (4 + WITNESSES) + 4 * 512 + 100


def test_a_slow_service_is_waited_for_by_several_threads(diabetes, network):
    X, _ = diabetes
    at_once, most, lock = 0, 0, threading.Lock()

    def slow(table):
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.02)
        with lock:
            at_once -= 1
        return network.predict(table)

    limes.TabularExplainer(slow, X, **options())(X.iloc[:4], workers=4)
    assert most > 1


def test_probabilities_that_do_not_add_up_are_spoken_of(diabetes):
    X, _ = diabetes
    explainer = limes.TabularExplainer(lambda t: np.full((len(t), 3), 0.27), X, max_calls=64, control="none")
    assert any("add up to 0.81" in text for text in explainer(X.iloc[:1]).warnings)
    fine = limes.TabularExplainer(lambda t: np.full((len(t), 4), 0.25), X, max_calls=64, control="none")
    assert not any("add up" in text for text in fine(X.iloc[:1]).warnings)


# -- stopping ------------------------------------------------------------------------------------------------


def test_a_tolerance_stops_early_and_says_when_it_cannot(diabetes, network):
    X, _ = diabetes
    easy = limes.TabularExplainer(network.predict, X, tolerance="20%", control="additive")(X.iloc[:1])
    assert easy.converged
    assert easy.model_calls < 4096
    assert easy.coefficients.standard_errors.max() <= 0.2 * np.abs(easy.coefficients.values).max()
    hard = limes.TabularExplainer(network.predict, X, tolerance=0.1, max_calls=256, control="none")(
        X.iloc[:1]
    )
    assert not hard.converged
    text = next(w for w in hard.warnings if "tolerance" in w)
    needed = int(text.split("about ")[1].split(" would")[0].replace(",", ""))
    rows = int(text.split("answers to ")[1].split()[0].replace(",", ""))
    assert rows < 256
    assert needed == pytest.approx(rows * (hard.coefficients.standard_errors.max() / 0.1) ** 2, rel=0.01)


# -- facts beside the coefficients ---------------------------------------------------------------------------


EVEN_SAMPLE = SimpleNamespace(
    excess=np.zeros(1),
    unlike=np.array([64]),
    effective_clusters=np.array([64.0]),
    effective=np.array([64.0]),
    collinear=np.zeros((1, 8), dtype=bool),
    fidelity_errors=np.zeros(1),
)


MOMENTS = SimpleNamespace(calls=np.array([64]), shared=np.array([0]), cut_short=np.array([False]))


def test_ties_are_named():
    coef, errors = np.array([[5.0, 4.9, 1.0, 0.2]]), np.array([[0.1, 0.1, 0.05, 0.01]])
    surrogate = Surrogate(np.zeros(1), coef, errors, np.ones(1), coef)

    class Fitted:
        sampled = EVEN_SAMPLE
        moments, refusals = MOMENTS, {}

    Fitted.surrogate = surrogate
    result = sampling_warnings(Fitted, ["a", "b", "c", "e"], ["y"], sampling=Sampling(64))
    text = "the order of LIME's coefficients is not certain, they are equal within their errors: a and b"
    assert result[0] == (text,)


@pytest.mark.parametrize(("tied", "named"), [(3, True), (4, True), (5, False)])
def test_ties_count_down_to_the_fifth_place(tied, named):
    """A tie of the fifth place with the sixth decides who is among the first five; a later tie does not."""
    coef = 10.0 - np.arange(8.0)
    coef[tied + 1] = coef[tied] - 0.01
    names = list("abcdefgh")

    class Fitted:
        sampled = EVEN_SAMPLE
        moments, refusals = MOMENTS, {}
        surrogate = Surrogate(np.zeros(1), coef[None], np.full((1, 8), 0.1), np.ones(1), coef[None])

    texts = sampling_warnings(Fitted, names, ["y"], sampling=Sampling(64)).get(0, ())
    assert [f"{names[tied]} and {names[tied + 1]}" in text for text in texts] == [True] * named


def test_fidelity_shares_and_local_error_have_errors_that_cover(diabetes):
    """Against a long run, over seeds."""
    X, y = diabetes
    model = RandomForestRegressor(20, max_depth=6, random_state=0).fit(X, y)

    def explained(**more):
        options = {"method": "sampled", "control": "additive", "max_calls": 512, **more}
        return limes.TabularExplainer(model, X, **options)(X.iloc[[3]])

    exact, long = (
        limes.TabularExplainer(model, X)(X.iloc[[3]]),
        explained(max_calls=repeats(2**17, 2**15), rng=99),
    )
    assert exact.coefficients.shares is None
    runs = [explained(rng=seed) for seed in range(repeats(40, 20))]
    fidelity = [abs(e.fidelity[0] - long.fidelity[0]) <= 1.96 * e.fidelity_errors[0] for e in runs]
    local = [
        abs(e.coefficients.local_errors[0] - exact.coefficients.local_errors[0])
        <= 1.96 * e.coefficients.surrogate_errors[0]
        for e in runs
    ]
    shares = [
        np.abs(e.coefficients.shares[0] - long.coefficients.shares[0])
        <= 1.96 * e.coefficients.share_errors[0]
        for e in runs
    ]
    assert np.mean(fidelity) >= 0.85
    assert np.mean(local) >= 0.85
    assert np.mean(shares) >= 0.9
    assert runs[0].coefficients.shares.sum() == pytest.approx(runs[0].fidelity[0])
    spread = np.std([e.fidelity[0] for e in runs], ddof=1)
    assert np.mean([e.fidelity_errors[0] for e in runs]) < 2.5 * spread


def test_the_control_is_chosen_and_named():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(X, y)
    explanation = limes.TabularExplainer(model, X, max_calls=1024)(X.iloc[:1])
    assert explanation.coefficients.controls[0] in ("margin", "tree")
    again = limes.Explanation.from_json(explanation.to_json())
    assert again.coefficients.controls == explanation.coefficients.controls
    assert np.array_equal(again.coefficients.share_errors, explanation.coefficients.share_errors)
    assert explanation[..., 1].coefficients.shares.shape == (1, 30)
    only = limes.TabularExplainer(model, X, max_calls=256, control="margin")(X.iloc[:1])
    assert only.coefficients.controls == ("margin",)
    with pytest.raises(InputError, match="margin that can be read"):
        limes.TabularExplainer(lambda table: model.predict_proba(table), X, control="margin")


# -- models of other libraries -------------------------------------------------------------------------------


def test_a_torch_module(diabetes):
    torch = pytest.importorskip("torch")
    X, _ = diabetes
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(10, 8), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1)
    )
    explainer = limes.TabularExplainer(net, X, method="sampled", max_calls=256, control="none")
    explanation = explainer(X.iloc[:2])
    net.eval()
    with torch.inference_mode():
        expected = net(torch.tensor(X.iloc[:2].to_numpy(copy=True), dtype=torch.float32)).numpy()[:, 0]
    assert explanation.predictions == pytest.approx(expected, rel=1e-6)
    assert explanation.coefficients.values.shape == (2, 10)
    net.train()
    explainer(X.iloc[:1])
    assert net.training


class _Careful:
    """A function that refuses rows with a negative number, or all while it is down."""

    def __init__(self):
        self.is_down = False

    def __call__(self, x):
        if self.is_down or (np.asarray(x) < 0).any():
            raise ValueError("negative")
        return np.asarray(x)[:, 0] * np.asarray(x)[:, 1]


@pytest.mark.parametrize("refused", [0, 3, 6])
@pytest.mark.parametrize("call", [limes.TabularExplainer.__call__, limes.TabularExplainer.contributions])
def test_the_row_that_a_model_refuses_is_named(refused, call):
    model, rows = _Careful(), np.random.default_rng(0).uniform(size=(40, 3))
    explainer = limes.TabularExplainer(model, rows, max_calls=200)
    some = rows[:7].copy()
    some[refused, 1] = -1.0
    with pytest.raises(ModelError, match=rf"^row {refused}: .*negative") as stop:
        call(explainer, some, progress=False)
    assert stop.value.row == refused
    model.is_down = True
    with pytest.raises(ModelError, match="negative") as stop:
        call(explainer, rows[:7], progress=False)
    assert stop.value.row is None
