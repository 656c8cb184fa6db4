"""BLAS has one thread while limes computes, and the user's number in the user's model and afterwards."""

from __future__ import annotations

import os
from threading import Barrier, Thread

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

import limes
import limes.scale
from effort import repeats
from internals import _libraries, one_blas_thread, one_blas_thread_in_models, user_blas_threads

X = np.random.default_rng(0).normal(size=(200, 6))


def blas_threads():
    return {library.num_threads for libraries in _libraries() for library in libraries}


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield
        assert blas_threads() == {2}


def test_one_inside_and_as_before_outside():
    with one_blas_thread():
        assert blas_threads() == {1}
        with one_blas_thread():
            assert blas_threads() == {1}
            with user_blas_threads():
                assert blas_threads() == {2}
                with one_blas_thread():
                    assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    with user_blas_threads():
        assert blas_threads() == {2}


def test_an_error_leaves_nothing_behind():
    with pytest.raises(ZeroDivisionError), one_blas_thread(), user_blas_threads(), one_blas_thread():
        raise ZeroDivisionError
    assert blas_threads() == {2}


def test_the_user_may_change_the_number_between_calls():
    for number in (3, 1, 2):
        with threadpool_limits(number, user_api="blas"):
            with one_blas_thread():
                assert blas_threads() == {1}
            assert blas_threads() == {number}


def test_threads_that_overlap_keep_one_until_the_last_has_ended():
    both, first_left, seen = Barrier(2), Barrier(2), []

    def first():
        with one_blas_thread():
            both.wait()
        first_left.wait()

    def second():
        with one_blas_thread():
            both.wait()
            first_left.wait()
            seen.append(blas_threads())
            with user_blas_threads():
                seen.append(blas_threads())

    threads = [Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [{1}, {2}]


def test_many_threads_at_once_end_where_they_began():
    def work():
        for _ in range(200):
            with one_blas_thread(), user_blas_threads(), one_blas_thread():
                assert blas_threads() == {1}

    threads = [Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert blas_threads() == {2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_forgets_the_other_threads():
    inside, forked = Barrier(2), Barrier(2)

    def compute():
        with one_blas_thread():
            inside.wait()
            forked.wait()

    def exit_code(check):
        process = os.fork()
        if process == 0:
            os._exit(0 if check() else 1)
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

    def outside_again():
        with one_blas_thread():
            inner = blas_threads()
        return inner == {1} and blas_threads() == {2}

    thread = Thread(target=compute)
    thread.start()
    inside.wait()
    assert exit_code(lambda: blas_threads() == {2}) == 0
    assert exit_code(outside_again) == 0
    with one_blas_thread():
        assert exit_code(lambda: blas_threads() == {1}) == 0
    assert blas_threads() == {1}
    forked.wait()
    thread.join()


def text_model(texts):
    return np.array([float("good" in text.split()) + 0.3 * ("film" in text) for text in texts])


def image_model(images):
    return images[:, :4, :4].mean(axis=(1, 2)) ** 2


EXPLAIN = {
    "table": lambda model: limes.TabularExplainer(lambda x: model(np.tanh(x[:, 0] * x[:, 1])), X)(X[:2]),
    "text": lambda model: limes.TextExplainer(lambda t: model(text_model(t)), max_calls=256)(
        "a good film with a long plot and a very good cast of actors"
    ),
    "image": lambda model: limes.ImageExplainer(
        lambda a: model(image_model(a)), segments=np.add.outer(np.arange(8) // 2 * 4, np.arange(8) // 2)
    )(np.arange(64.0).reshape(8, 8) / 64),
    "sparse": lambda model: limes.SparseExplainer(
        lambda s: model(s[:, 0] + s[:, 1] * s[:, 2]), k=2, solver="branch_and_bound"
    )(np.sign(X[:2])),
}


@pytest.mark.parametrize("kind", EXPLAIN)
def test_models_have_the_users_threads_and_explanations_do_not_depend_on_them(kind):
    seen, values = set(), []

    def model(answers):
        seen.update(blas_threads())
        return answers

    for number in repeats((1, 2, 3), (1, 3)):
        with threadpool_limits(number, user_api="blas"):
            explanation = EXPLAIN[kind](model)
            values.append((explanation.coefficients.values, explanation.coefficients.standard_errors))
        assert seen == {number}
        seen.clear()
    for other in values[1:]:
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(values[0], other, strict=True))


def test_workers_share_the_cores_with_one_thread_each():
    seen = set()

    def model(x):
        seen.update(blas_threads())
        return x[:, 0] * x[:, 1]

    limes.TabularExplainer(model, X, method="sampled", max_calls=128)(X[:1])
    assert seen == {2}
    explainer = limes.TabularExplainer(model, X, max_calls=128, control="none")
    seen.clear()
    explainer(X[:4], workers=2)
    assert 1 in seen


def test_long_tables_keep_one_thread_in_models_too():
    seen = set()

    def model(x):
        seen.update(blas_threads())
        return np.asarray(x)[:, 0] * np.asarray(x)[:, 1]

    frame = pd.DataFrame(X, columns=list("abcdef"))
    explainer = limes.TabularExplainer(model, frame, bins=None, max_calls=128, control="none")
    seen.clear()
    limes.scale.explain_frame(explainer, frame[:2])
    assert seen == {1}
    assert blas_threads() == {2}


def test_long_tables_at_the_same_time_leave_the_users_number():
    """The first begins before the second and ends inside it: neither restores what the other has set."""
    inside, first_ended = Barrier(2), Barrier(2)

    def first():
        with one_blas_thread_in_models():
            inside.wait()
        first_ended.wait()

    thread = Thread(target=first)
    thread.start()
    with one_blas_thread_in_models():
        inside.wait()
        first_ended.wait()
        with user_blas_threads():
            assert blas_threads() == {1}
    thread.join()
    assert blas_threads() == {2}
