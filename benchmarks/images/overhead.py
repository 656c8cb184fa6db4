"""CPU seconds beside the network's own, and beside segmentation; memory above the network's."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.images.networks import LITE, lime_coefficients
from benchmarks.progress import say
from benchmarks.speed.memory import Watch, fresh

CALLS, BATCH = 1000, 64
PHOTOGRAPH = "cat"
# cells of a grid with as many superpixels as the finest segmentations have
_FINE = 12


class Trivial:
    """A model that takes next to no time: mean brightness of four corners, as two probabilities."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, images: Any) -> Any:
        start = time.perf_counter()
        share = np.clip(np.asarray(images)[:, ::32, ::32].mean(axis=(1, 2, 3)) / 255.0, 0.0, 1.0)
        self.seconds += time.perf_counter() - start
        return np.column_stack([1.0 - share, share])


def measure(rounds: int = 5) -> dict:
    """Medians over rounds; limes and ``lime`` take turns."""
    image = LITE.image(PHOTOGRAPH)
    small = image.astype(np.uint8)
    labels = np.unique(LITE.segments(small), return_inverse=True)[1].reshape(image.shape[:2])
    place = np.arange(image.shape[0]) * _FINE // image.shape[0]
    fine = place[:, None] * _FINE + place
    cases = {
        "quickshift": (small, labels),
        "quickshift, float64": (image, labels),
        f"grid {_FINE} x {_FINE}": (small, fine),
    }
    result = {name: _trivial(*case, rounds) for name, case in cases.items()}
    say("overhead with EfficientNet-Lite0")
    return {"trivial": result, "network": _network(max(1, rounds // 2)), "memory": _memories()}


def _trivial(image: Any, labels: Any, rounds: int) -> dict:
    seconds: dict[str, list[float]] = {"limes": [], "limes, no control": [], "lime": []}
    for turn in range(rounds + 1):
        say(f"overhead: round {turn} of {rounds}")
        for who, run in (("limes", "auto"), ("limes, no control", "none"), ("lime", None)):
            model = Trivial()
            start = time.process_time()
            _limes(model, image, labels, run) if run else _lime(model, image, labels)
            if turn:  # the first round imports
                seconds[who].append(time.process_time() - start - model.seconds)
    medians = {who: float(np.median(each)) for who, each in seconds.items()}
    return {"superpixels": int(labels.max()) + 1, **medians}


def _limes(model: Any, image: Any, labels: Any, control: str) -> None:
    import limes

    limes.ImageExplainer(model, segments=labels, max_calls=CALLS, control=control, top=1)(
        image, progress=False
    )


def _lime(model: Any, image: Any, labels: Any) -> None:
    from lime.lime_image import LimeImageExplainer

    LimeImageExplainer(random_state=0).explain_instance(
        image, model, top_labels=1, num_samples=CALLS, segmentation_fn=lambda _: labels
    )


def _network(rounds: int) -> dict:
    """Seconds of the network itself and of all else, at 1,000 samples of 224 x 224."""
    image = LITE.image(PHOTOGRAPH)
    labels = np.unique(LITE.segments(image), return_inverse=True)[1].reshape(image.shape[:2])
    seconds: dict[str, list[float]] = {"forward": [], "limes": [], "lime": []}
    for _ in range(rounds):
        session = LITE.session()
        explainer = LITE.explainer(session, max_calls=CALLS, segments=labels)
        start = time.process_time()
        explainer(image, progress=False)
        seconds["forward"].append(session.seconds)
        seconds["limes"].append(time.process_time() - start - session.seconds)
        session = LITE.session()
        start = time.process_time()
        lime_coefficients(LITE, session, image, 0, CALLS, 0)
        seconds["lime"].append(time.process_time() - start - session.seconds)
    return {who: float(np.median(each)) for who, each in seconds.items()}


def _memories() -> dict:
    say("memory")
    return {who: fresh(_memory, who) for who in ("limes", "lime")}


def _memory(who: str) -> dict[str, float]:
    """MB at the peak above a network that has just answered a batch of 64."""
    image, session = LITE.image(PHOTOGRAPH), LITE.session()
    labels = LITE.segments(image)
    batch = np.zeros((BATCH, 3, LITE.side, LITE.side), np.float32)
    session.run(["logits"], {"image": batch})
    del batch
    watch = Watch()
    if who == "limes":
        LITE.explainer(session, max_calls=256, batch_size=BATCH, segments=labels)(image, progress=False)
    else:
        lime_coefficients(LITE, session, image, 0, 256, 0)
    return watch()
