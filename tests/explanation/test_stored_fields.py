"""Stored explanations come from anybody: every field is checked when it is read, or shown as it is."""

from __future__ import annotations

import copy
import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

import limes
from effort import DEEP
from limes import Explanation
from limes.exceptions import InputError, LimesError

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(60, 3)), columns=["a", "b", "c"])
FOREST = RandomForestClassifier(3, max_depth=3, random_state=0).fit(
    X, np.digitize(X["a"] * X["b"], [-0.3, 0.3])
)
# Values of wrong types, and odd ones of the right type, for every place
VALUES = [
    *(None, True, False, 0, 1, -1, 0.5, 10**300, 10**400),
    *("", "x", "1.0", "\ud83d"),
    *([], [5], [None], ["x"], [[1]], [[["a"]]], [{}]),
    *({}, {"a": 1}, {"$float": "nan"}),
]


def table():
    infinite = X[:3].copy()
    infinite.iloc[1, 0] = np.inf
    return limes.TabularExplainer(FOREST, X, errors="row", contributions=True)(infinite)


def slopes():
    return limes.TabularExplainer(
        lambda rows: rows[:, 0] * rows[:, 1], X.to_numpy(), bins=None, max_calls=256
    )(X.to_numpy()[:1])


def rule(objective):
    explainer = limes.SparseExplainer(
        lambda rows: FOREST.predict_proba(pd.DataFrame(rows, columns=X.columns))[:, 1],
        literals=limes.Literals.fit(X.to_numpy()),
        k=2,
        samples=200,
        objective=objective,
        threshold=0.5 if objective == "class" else None,
    )
    return explainer(X.to_numpy()[:1])


def text(**options):
    return limes.TextExplainer(lambda texts: np.array([float(t.count("good")) for t in texts]), **options)


def long_text():
    return text(hierarchy=True)("A good day. A good night. So it was, and so it is. " * 8)


def image():
    explainer = limes.ImageExplainer(
        lambda images: np.asarray(images, float).mean(axis=(1, 2, 3)),
        segments=np.arange(64).reshape(8, 8) // 16,
    )
    return explainer(RNG.integers(0, 255, (8, 8, 3), dtype=np.uint8))


def series():
    explainer = limes.SeriesExplainer(
        lambda many: np.asarray(many).reshape(len(many), -1).mean(axis=1), count=3
    )
    return explainer(RNG.normal(size=12))


KINDS = {
    "table": table,
    "slopes": slopes,
    "rule": lambda: rule("fidelity"),
    "rule that holds": lambda: rule("class"),
    "text": lambda: text()("a good day, a good night"),
    "long text": long_text,
    "image": image,
    "series": series,
}


def places(value, path=()):
    """Paths of all parts of a document; of a list those of its first two entries."""
    if path:
        yield path
    parts = (
        value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    )
    for key, part in parts:
        yield from places(part, (*path, key))


def changed(document, path, value):
    document = copy.deepcopy(document)
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(document)


def shown(explanation):
    return (
        str(explanation),
        repr(explanation),
        explanation.to_html(),
        explanation.levels,
        explanation.to_json(),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_field_holds_it_is_refused_by_name_or_shown(kind):
    document = json.loads(KINDS[kind]().to_json())
    assert shown(Explanation.from_json(json.dumps(document)))
    cases = [(path, value) for path in places(document) for value in VALUES]
    step = 1 if DEEP else 29  # prime to the number of values
    refused = accepted = 0
    for path, value in cases[::step]:
        try:
            shown(Explanation.from_json(changed(document, path, value)))
            accepted += 1
        except LimesError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"{path} = {value!r}: {error!r}") from error
    assert refused > accepted > 0


@pytest.mark.parametrize(
    ("kind", "field", "value", "message"),
    [
        ("table", "errors", [5], "errors has the entry 5; pass the name of a row and a text"),
        ("table", "errors", None, "errors is None; pass a list"),
        ("table", "row_warning_kinds", [[[[1]]], []], "is damaged"),
        ("table", "provenance", {"answer": []}, r"provenance\['answer'\] is \[\]; pass str"),
        ("slopes", "provenance", {"slopes": {"a": {"mean": 0}}}, r"provenance\['slopes'\]"),
        ("text", "provenance", {"text": "a", "spans": {"a": [[1, "x"]]}}, r"provenance\['spans'\]"),
        ("rule", "certificates", [{"solver": 5}], r"certificates\['solver'\] is 5; pass str"),
        ("rule", "certificates", [{"solver": "x"}], "certificates have other fields"),
    ],
)
def test_a_wrong_field_is_named(kind, field, value, message):
    document = json.loads(KINDS[kind]().to_json())
    with pytest.raises(InputError, match=message):
        Explanation.from_json(json.dumps({**document, field: value}))


def test_a_certificate_without_a_bound_is_refused():
    document = json.loads(rule("class").to_json())
    for name in ("fidelity", "precision", "band", "class"):
        stored = copy.deepcopy(document)
        del stored["certificates"][0]["bounds"][name]
        with pytest.raises(InputError, match=r"certificates\['bounds'\]"):
            Explanation.from_json(json.dumps(stored))


def test_a_number_that_no_float_holds_is_refused():
    document = json.loads(table().to_json())
    with pytest.raises(InputError, match="has 401 digits"):
        Explanation.from_json(changed(document, ("calls", 0), 10**400))


# -- texts and files ---------------------------------------------------------------------------------------


def test_a_text_never_opens_a_file(tmp_path):
    explanation = table()
    path = tmp_path / "e.json"
    explanation.to_json(path)
    for source in (str(path), path, "no/such/file.json", b"{}", None, 5):
        with pytest.raises(
            InputError, match=r"pass what to_json wrote; Explanation.read_json\(path\) reads a file"
        ):
            Explanation.from_json(source)
    assert Explanation.read_json(path).to_json() == path.read_text(encoding="utf-8")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(
        InputError, match=r"from the file 'no/such/file.json'.*from_json\(text\) reads a text"
    ):
        Explanation.read_json("no/such/file.json")
    other = tmp_path / "other.json"
    other.write_text("[1]", encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(f'The file {other} has no "format"')):
        Explanation.read_json(other)
    with pytest.raises(InputError, match=r"the file '\{"):
        Explanation.read_json(table().to_json())
