"""The classifiers and photographs of the data, as they are asked here."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
from PIL import Image

import limes
from benchmarks.data import DATA


class Timed(onnxruntime.InferenceSession):
    """A session that knows how long it ran, in CPU seconds."""

    seconds = 0.0

    def run(self, *arguments: Any, **named: Any) -> Any:
        start = time.process_time()
        result = super().run(*arguments, **named)
        self.seconds += time.process_time() - start
        return result


@dataclass(frozen=True)
class Network:
    """A classifier of squares: it is given (pixels - mean) / scale; its labels start at line ``first``."""

    name: str
    file: str
    side: int
    mean: float
    scale: float
    first: int
    kernel_size: float

    @property
    def preprocess(self) -> limes.Preprocess:
        return limes.Preprocess(mean=self.mean, scale=self.scale, size=self.side)

    @property
    def labels(self) -> list[str]:
        lines = (DATA / "models" / "imagenet_labels_1001.txt").read_text().splitlines()
        return lines[self.first :]

    def session(self) -> Timed:
        """On one thread: times of many threads do not compare."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        return Timed(str(DATA / "models" / self.file), options, providers=["CPUExecutionProvider"])

    def image(self, photograph: str) -> Any:
        """The middle of a photograph, as floats, so that the mean of a superpixel is not rounded."""
        with Image.open(DATA / "images" / f"{photograph}.jpg") as opened:
            photo = np.asarray(opened.convert("RGB"))
        return self.preprocess.framing(photo).apply(photo).astype(np.float64)

    def segments(self, image: Any) -> Any:
        from limes._explainers.superpixels import quickshift

        return quickshift(image / 255.0, kernel_size=self.kernel_size)

    def explainer(self, session: Any, **options: Any) -> limes.ImageExplainer:
        return limes.ImageExplainer(
            session,
            **{
                "preprocess": self.preprocess,
                "labels": self.labels,
                "link": "softmax",
                "segments": self.segments,
                "top": 1,
                **options,
            },
        )

    def probabilities(self, session: Any) -> Any:
        """Return what ``lime`` asks: images (n, H, W, 3) -> (n, classes)."""

        def ask(images: Any) -> Any:
            batch = ((np.asarray(images) - self.mean) / self.scale).transpose(0, 3, 1, 2).astype(np.float32)
            logits = session.run(["logits"], {"image": batch})[0].astype(np.float64)
            powers = np.exp(logits - logits.max(axis=1, keepdims=True))
            return powers / powers.sum(axis=1, keepdims=True)

        return ask


LITE = Network("EfficientNet-Lite0", "efficientnet_lite0.onnx", 224, 127.0, 128.0, 1, 4.0)
SMALL = Network("MobileNet v1 0.25", "mobilenet_v1_025_128.onnx", 128, 128.0, 128.0, 0, 2.5)
NETWORKS = {network.name: network for network in (LITE, SMALL)}


def lime_coefficients(network: Network, session: Any, image: Any, label: int, calls: int, seed: int) -> Any:
    """``lime``'s coefficients of one class, (d,), at its defaults but for the superpixels."""
    from lime.lime_image import LimeImageExplainer

    segments = np.unique(network.segments(image), return_inverse=True)[1].reshape(image.shape[:2])
    explanation = LimeImageExplainer(random_state=seed).explain_instance(
        image,
        network.probabilities(session),
        labels=(label,),
        top_labels=None,
        num_samples=calls,
        batch_size=64,
        segmentation_fn=lambda _: segments,
    )
    coef = np.zeros(int(segments.max()) + 1)
    for j, value in explanation.local_exp[label]:
        coef[j] = value
    return coef
