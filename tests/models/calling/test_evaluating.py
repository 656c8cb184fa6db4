"""Evaluation mode of networks that threads share: with a stand-in for torch, and with torch."""

from __future__ import annotations

import gc
import os
import pickle
import sys
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Barrier, Thread
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import limes
from internals import _modes, evaluating

# -- a stand-in ----------------------------------------------------------------------------------------------


class Module:
    """Modes as torch's modules have them: a flag each, which ``train`` sets for all below."""

    def __init__(self, *children):
        self.children, self.training = children, True

    def modules(self):
        yield self
        for child in self.children:
            yield from child.modules()

    def train(self, mode=True):
        self.training = mode
        for child in self.children:
            child.train(mode)
        return self

    def eval(self):
        return self.train(False)

    def parameters(self):
        return iter(())


class Array(np.ndarray):
    """As much of a tensor as is asked for."""

    def to(self, *_):
        return self

    def double(self):
        return self

    cpu = double

    def numpy(self):
        return np.asarray(self)


@contextmanager
def _inference():
    yield


@pytest.fixture
def stand_in(monkeypatch):
    """Modules of this file under the name of torch's."""
    library, home = ModuleType("torch"), ModuleType("torch.nn.modules.module")
    library.float32, library.inference_mode, library.Tensor = np.float32, _inference, Array
    library.is_tensor = lambda value: isinstance(value, Array)
    library.as_tensor = lambda values: np.asarray(values).view(Array)
    home.Module = Module
    monkeypatch.setattr(Module, "__module__", home.__name__)
    monkeypatch.setitem(sys.modules, "torch", library)
    monkeypatch.setitem(sys.modules, home.__name__, home)
    return Module


@pytest.fixture(params=["stand-in", "torch"])
def module(request):
    """A class of modules that takes its children: the stand-in, or one of torch."""
    if request.param == "stand-in":
        return request.getfixturevalue("stand_in")
    torch = pytest.importorskip("torch", reason="pip install torch")

    class Parent(torch.nn.Module):
        def __init__(self, *children):
            super().__init__()
            for place, child in enumerate(children):
                self.add_module(str(place), child)

    return Parent


def modes(network):
    return [one.training for one in network.modules()]


def put(network, flags):
    """Set the modes of all submodules, as a user may."""
    for one, flag in zip(network.modules(), flags, strict=True):
        one.training = flag


# -- one thread ----------------------------------------------------------------------------------------------

# a network, two blocks, and a layer in the second
FLAGS = [
    (True, True, True, True),
    (False, False, False, False),
    (True, False, True, True),  # a frozen block in a training network
    (True, True, True, False),
    (True, True, False, True),
    (False, True, False, False),  # a block that trains in a network that does not
    (False, False, True, False),
    (False, False, False, True),
]


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("fails", [False, True])
def test_every_submodule_has_its_mode_back(module, flags, fails):
    network = module(module(), module(module()))
    put(network, flags)
    before = modes(network)
    with ExitStack() as stack:
        if fails:
            stack.enter_context(pytest.raises(ZeroDivisionError))
        with evaluating(network):
            assert not any(modes(network))
            with evaluating(network):  # nested
                assert not any(modes(network))
            assert not any(modes(network))
            if fails:
                raise ZeroDivisionError
    assert modes(network) == before
    assert not _modes._in_use


def test_a_network_that_cannot_be_put_into_evaluation_mode(module):
    class Stubborn(module):
        def eval(self):
            raise RuntimeError("no")

    network = Stubborn(module())
    with pytest.raises(RuntimeError, match="no"), evaluating(network):
        pass
    assert all(modes(network))
    assert not _modes._in_use


def test_methods_that_are_overridden_are_called(module):
    """Adapters merge their weights in ``train(False)``, and take them apart in ``train(True)``."""
    calls = []

    class Adapter(module):
        def train(self, mode=True):
            calls.append(mode)
            return super().train(mode)

    network = module(module(), Adapter())
    with evaluating(network):
        assert calls == [False]
    assert calls == [False, True]
    assert all(modes(network))


def test_other_models_are_left_alone():
    model = SimpleNamespace(training=True)
    with evaluating(model):
        assert model.training


def test_networks_are_not_kept(module):
    network = module(module())
    with evaluating(network):
        pass
    seen = weakref.ref(network)
    del network
    gc.collect()
    assert seen() is None


# -- several threads -----------------------------------------------------------------------------------------


def overlapping(first, second):
    """Enter the first network, then the second in another thread; leave the first, then the second.

    Return the modes of both before the last is left.
    """
    entered, leaving, seen = Barrier(2), Barrier(2), []

    def other():
        with evaluating(second):
            entered.wait()
            leaving.wait()
            seen.extend([modes(first), modes(second)])

    with evaluating(first):
        thread = Thread(target=other)
        thread.start()
        entered.wait()
    leaving.wait()
    thread.join()
    return seen


@pytest.mark.parametrize("flags", FLAGS)
def test_the_last_thread_restores_the_modes(module, flags):
    network = module(module(), module(module()))
    put(network, flags)
    before = modes(network)
    _, during = overlapping(network, network)
    assert not any(during)
    assert modes(network) == before


@pytest.mark.parametrize("body_trains", [True, False])
def test_networks_that_share_a_part(module, body_trains):
    """The first is restored but for the part that the other thread still calls."""
    body = module(module())
    first, second = module(body, module()), module(body, module())
    put(body, [body_trains, True])
    before = modes(first), modes(second)
    of_first, of_second = overlapping(first, second)
    assert not any(of_second)
    assert of_first == [True, False, False, True]
    assert (modes(first), modes(second)) == before
    assert not _modes._in_use


def test_many_threads(module):
    network = module(module(), module(module()))
    put(network, FLAGS[3])

    def work(_):
        with evaluating(network):
            time.sleep(0)
            return modes(network)

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(work, range(2000)))
    assert not np.any(seen)
    assert modes(network) == list(FLAGS[3])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("inside", [False, True])
def test_a_fork_forgets_the_other_threads(module, inside):
    """No other thread of the forked process would restore the modes."""
    network = module(module())
    entered, forked = Barrier(2), Barrier(2)

    def other():
        with evaluating(network):
            entered.wait()
            forked.wait()

    thread = Thread(target=other)
    thread.start()
    entered.wait()
    with ExitStack() as stack:
        if inside:
            stack.enter_context(evaluating(network))
        process = os.fork()
        if process == 0:
            before = modes(network) == [not inside] * 2
            stack.close()
            with evaluating(network):
                within = not any(modes(network))
            os._exit(0 if before and within and all(modes(network)) else 1)
    _, status = os.waitpid(process, 0)
    forked.wait()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
    assert all(modes(network))


# -- explainers ----------------------------------------------------------------------------------------------


class Sum(Module):
    """The sum of a row, plus noise of a layer that drops out in training mode."""

    def __call__(self, rows):
        time.sleep(0.002)  # threads overlap
        return rows.sum(axis=1) + sum(one.training for one in self.modules()) * np.arange(len(rows))


def test_workers_of_an_explainer(stand_in):
    """Before, coefficients were off by up to 0.19, and the network was left in another mode."""
    network = Sum(stand_in(), stand_in())
    put(network, [True, True, False])
    X = np.random.default_rng(0).normal(size=(12, 4))
    options = {"bins": None, "method": "sampled", "max_calls": 256, "batch_size": 32, "control": "none"}
    explanation = limes.TabularExplainer(network, X, **options)(X, workers=4, progress=False)
    np.testing.assert_allclose(explanation.coefficients.values, 1.0, atol=1e-9)
    np.testing.assert_allclose(explanation.predictions, X.sum(axis=1), rtol=1e-12)
    assert modes(network) == [True, True, False]


def test_workers_with_torch():
    """Dropout and batch statistics, one of them frozen; users' threads beside those of the call."""
    torch = pytest.importorskip("torch", reason="pip install torch")
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1)
    ).double()
    network[0].eval()
    before = modes(network)
    X = np.random.default_rng(0).normal(size=(6, 4))
    options = {"bins": None, "method": "sampled", "max_calls": 256, "batch_size": 32, "control": "none"}
    explainer = limes.TabularExplainer(network, X, **options)
    with ThreadPoolExecutor(3) as pool:
        several = list(pool.map(lambda _: explainer(X, workers=3, progress=False), range(3)))
    # without dropout the network is linear
    norm = network[0].weight / (network[0].running_var + network[0].eps).sqrt()
    expected = (network[3].weight @ network[1].weight * norm).detach().numpy()[0]
    for explanation in several:
        np.testing.assert_allclose(
            explanation.coefficients.values, np.tile(expected, (6, 1)), rtol=1e-9, atol=1e-12
        )
    assert modes(network) == before
    copied = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_allclose(
        copied(X[:1], progress=False).coefficients.values[0], expected, rtol=1e-9, atol=1e-12
    )
