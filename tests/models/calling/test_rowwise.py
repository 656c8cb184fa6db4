"""Predictions that depend on the row alone, to the last bit, with few calls where the model allows it."""

from __future__ import annotations

import numpy as np
import pytest

from internals import RowwisePredictions, caller
from limes.exceptions import ModelError

BLOCK = 48


class CountedModel:
    """A model that counts its calls."""

    def __init__(self, model):
        self.model, self.sizes = model, []

    def __call__(self, rows):
        self.sizes.append(len(rows))
        return self.model(rows)


def shifted(rows):
    """Depends on its neighbours in the last bits: a row is moved by their mean, and back."""
    mean = rows.mean()
    return (rows + mean).sum(axis=1) - mean * rows.shape[1]


def assert_same_in_any_company(predictions, X):
    whole = predictions(X)
    order = np.random.default_rng(0).permutation(len(X))
    assert np.array_equal(predictions(X[order]), whole[order])
    for size in (1, 7, BLOCK, 100):
        pieces = [predictions(X[i : i + size]) for i in range(0, len(X), size)]
        assert np.array_equal(np.concatenate(pieces), whole)


def test_a_model_of_single_rows_is_called_in_blocks():
    X = np.random.default_rng(0).normal(size=(300, 5))
    model = CountedModel(lambda rows: np.tanh(rows).sum(axis=1))
    predictions = RowwisePredictions(model, X)
    assert np.array_equal(predictions(X), np.tanh(X).sum(axis=1))
    assert predictions.in_blocks
    assert predictions.calls == 768  # counted with the rows that the model was asked about
    assert set(model.sizes) == {BLOCK}
    assert_same_in_any_company(predictions, X)


def test_a_network_has_the_same_predictions_in_every_batch():
    """Whether in blocks or one at a time, which depends on the matrix products of the machine."""
    rng = np.random.default_rng(0)
    X, first, second = rng.normal(size=(300, 10)), rng.normal(size=(10, 64)), rng.normal(size=(64, 2))

    def network(rows):
        return np.tanh(rows @ first) @ second

    predictions = RowwisePredictions(network, X)
    assert np.allclose(predictions(X), network(X), rtol=1e-12)
    assert_same_in_any_company(predictions, X)


def test_a_model_that_mixes_rows_is_called_row_by_row():
    X = np.random.default_rng(0).normal(size=(100, 3))
    assert not np.array_equal(shifted(X), [shifted(row[None])[0] for row in X])
    model = CountedModel(shifted)
    predictions = RowwisePredictions(model, X)
    assert np.array_equal(predictions(X), [shifted(row[None])[0] for row in X])
    assert not predictions.in_blocks
    assert model.sizes[-len(X) :] == [1] * len(X)


def test_a_difference_in_one_place_of_a_block_is_noticed():
    X = np.random.default_rng(1).random((500, 2)) + 1.0

    def last_differs(rows):
        answers = rows.sum(axis=1)
        answers[-1] = rows[-1, ::-1].sum() + (rows[-1, 0] * 2.0**-52 if len(rows) > 1 else 0.0)
        return answers

    assert not RowwisePredictions(last_differs, X).in_blocks


@pytest.mark.parametrize("rows", [1, 3])
def test_few_background_rows_are_repeated(rows):
    X = np.arange(2.0 * rows).reshape(rows, 2)
    predictions = RowwisePredictions(lambda x: np.column_stack([x.sum(axis=1), x[:, 0]]), X)
    assert np.array_equal(predictions(X), np.column_stack([X.sum(axis=1), X[:, 0]]))


def test_errors_of_the_model_are_its_own():
    def fails(rows):
        raise ModelError("model.predict raised ValueError")

    with pytest.raises(ModelError, match="raised ValueError"):
        RowwisePredictions(fails, np.ones((3, 2)))(np.ones((1, 2)))


@pytest.mark.parametrize(("seconds", "rows"), [(0.001, 768), (10.0, 192)])
def test_a_slow_model_is_checked_on_fewer_rows_and_all_are_counted(monkeypatch, seconds, rows):
    """By a clock that the model moves; its first call takes as long as loading does."""
    X, clock, sizes = np.random.default_rng(0).normal(size=(300, 5)), [0.0], []
    monkeypatch.setattr(caller.time, "perf_counter", lambda: clock[0])

    def model(x, differs=False):
        clock[0] += seconds if sizes else 60.0
        sizes.append(len(x))
        return x[:, 0] + (np.arange(len(x)) == 47) * 1e-9 * differs

    predictions = RowwisePredictions(model, X)
    assert predictions.in_blocks
    assert predictions.calls == sum(sizes) == rows
    assert not RowwisePredictions(lambda x: model(x, differs=True), X).in_blocks
