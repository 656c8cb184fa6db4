"""Composed newsgroup posts, in place of ``fetch_20newsgroups``, which downloads: topics share most words."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

_COMMON = """
the of to a and I that is it in for you this not have be on with are as but if they or do can so what there
would my was from people who one about think know like how just time see any even good say we question point
write really same much many where does anyone read mail thanks post article claim
"""
_TOPICS = {
    "alt.atheism": "atheist atheists belief evidence argument religion morality claim keith logic Islam "
    "secular agnostic proof tolerance objective",
    "soc.religion.christian": "God Jesus church Christ faith Bible scripture prayer sin Lord heaven gospel "
    "resurrection holy spirit apostle",
    "comp.graphics": "image graphics file format pixel polygon render software JPEG color screen algorithm "
    "texture video card driver",
    "sci.space": "space orbit launch NASA shuttle moon satellite rocket mission lunar telescope solar Earth "
    "payload astronaut probe",
    "rec.autos": "car engine dealer miles oil brake wheel drive speed tire clutch sedan gear Ford mechanic "
    "transmission",
}
_HOSTS = {
    "alt.atheism": ("caltech", "mantis"),
    "soc.religion.christian": ("rutgers", "athos"),
    "comp.graphics": ("sgi", "pixel"),
    "sci.space": ("digex", "toronto"),
    "rec.autos": ("hp", "uiuc"),
}

__all__ = ["fetch"]


def fetch(
    subset: str = "train", categories: list[str] | None = None, count: int = 200, **_: object
) -> SimpleNamespace:
    """``data``, ``target`` and ``target_names``, as scikit-learn's loader gives them; always the same."""
    names = sorted(categories or _TOPICS)
    rng = np.random.default_rng(["train", "test"].index(subset))
    target = np.arange(count) % len(names)
    posts = [_post(names[k], rng) for k in target]
    return SimpleNamespace(data=posts, target=target, target_names=names)


def _post(topic: str, rng: np.random.Generator) -> str:
    topic_words = _TOPICS[topic].split()
    host = rng.choice(_HOSTS[topic] if rng.random() < 0.7 else ("cs", "edu", "ibm"))
    subject = " ".join(rng.choice(topic_words, 2, replace=False))
    head = (
        f"From: user{rng.integers(99)}@{host}.edu\nSubject: Re: {subject}\nNNTP-Posting-Host: {host}.edu\n\n"
    )
    return head + "\n".join(_sentence(topic_words, rng) for _ in range(rng.integers(2, 6)))


def _sentence(topic_words: list[str], rng: np.random.Generator) -> str:
    common = _COMMON.split()
    words = [
        str(rng.choice(topic_words if rng.random() < 0.2 else common)) for _ in range(rng.integers(6, 14))
    ]
    return f"{' '.join(words).capitalize()}{rng.choice(['.', '?', '!'], p=[0.8, 0.15, 0.05])}"
