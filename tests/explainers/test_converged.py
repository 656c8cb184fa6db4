"""``converged`` is True only with exact numbers, or with small errors that can be trusted."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import limes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
ROW = np.zeros((1, 5))
WORDS = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
]


def linear(x):
    return x[:, 0] - 2.0 * x[:, 1]


def bent(x):
    return np.sin(3.0 * x[:, 0]) * x[:, 1] + x[:, 2] + np.cos(5.0 * x[:, 3] * x[:, 4])


def rare(x):
    return ((x[:, 0] > 1.9) & (x[:, 1] > 1.6)).astype(float)


def never(x):
    return (x[:, 0] > 50.0).astype(float)


def spike(x):
    return 1e4 * (np.abs(x[:, 0] - 2.0) < 0.05) + 0.01 * x[:, 1]


def by_table(model, **options):
    return lambda: limes.TabularExplainer(model, X, rng=0, **options)(ROW, progress=False)


def of_text(model, **options):
    def score(texts):
        z = np.array([[word in text.split() for word in WORDS] for text in texts], dtype=float)
        return model(z)

    return lambda: limes.TextExplainer(score, rng=0, **options)(" ".join(WORDS))


def of_image(model, **options):
    image = np.random.default_rng(1).random((16, 16))
    labels = (np.arange(16)[:, None] // 4) * 4 + np.arange(16) // 4

    def score(images):
        z = np.stack([[(one == image)[labels == k].all() for k in range(16)] for one in images])
        return model(z.astype(float))

    return lambda: limes.ImageExplainer(score, segments=labels, fill=-1.0, rng=0, **options)(image)


def reaches(shown, share):
    """Whether the largest standard error, the base's among them, is within this share of the largest bar."""
    errors = np.append(shown.standard_errors, getattr(shown, "base_errors", 0.0))
    return errors.max() <= share * np.abs(shown.values).max()


def words_of_pairs(z):
    return z[:, 0] * z[:, 1] + z[:, 2] + z[:, 3:].prod(axis=1)


# what explains, the model and options, and whether it converges; None: as far as its errors reach 1.5 %
CASES = {
    # bars are small here beside what answers differ by, which bounds what no answer showed
    "pool": (by_table(linear), None),
    "pool, small": (by_table(bent, max_calls=1024), None),
    "pool, a loose tolerance": (by_table(bent, tolerance="50%"), True),
    "pool, a strict one": (by_table(bent, tolerance="0.001%"), False),
    "pool, rare": (by_table(rare), False),
    "pool, all alike": (by_table(never), False),
    "pool, a spike": (by_table(spike), False),
    "own draws": (by_table(bent, bins=None, tolerance="50%"), True),
    "own draws, few": (by_table(bent, bins=None, max_calls=128), None),
    "own draws, rare": (by_table(rare, bins=None, max_calls=512), False),
    "own draws, all alike": (by_table(never, weights="euclidean", max_calls=256), False),
    "own draws, control": (by_table(bent, weights="euclidean", max_calls=256, control="none"), None),
    "joint": (by_table(bent, law="joint"), None),
    "joint, few rows count": (by_table(bent, law="joint", bandwidth=0.3), False),
    "joint, all alike": (by_table(never, law="joint"), False),
    "text": (of_text(words_of_pairs, max_calls=256), None),
    "text, all alike": (of_text(lambda z: np.zeros(len(z)), max_calls=256), False),
    "text, enumerated": (of_text(words_of_pairs, max_calls=1 << 13), True),
    "image": (of_image(words_of_pairs, max_calls=512), None),
    "image, all alike": (of_image(lambda z: np.ones(len(z)), max_calls=256), False),
    "MAPLE has no errors": (lambda: limes.MapleExplainer(linear, X, trees=5)(ROW), False),
    "exact": (by_table(LogisticRegression().fit(X, X[:, 0] > 0)), True),
    "a model that does not vary, read": (by_table(LogisticRegression().fit(X * 1e-9, X[:, 0] > 0)), True),
}


@pytest.mark.parametrize("name", CASES)
def test_converged_says_whether_errors_are_small_and_to_be_trusted(name):
    explain, expected = CASES[name]
    explanation = explain()
    lime = explanation.coefficients
    if expected is None:
        expected = reaches(lime, 0.015)
    assert lime.converged == expected
    assert lime.converged == bool(lime.row_converged.all())
    if any("not to be trusted" in text or "cannot be estimated" in text for text in explanation.warnings):
        assert not lime.converged


def test_a_row_that_misses_the_default_accuracy_is_warned_of_once():
    explanation = by_table(bent, max_calls=1024)()
    assert not explanation.converged
    assert [warning.code for (row,) in [explanation.row_warnings] for warning in row].count("tolerance") == 1


def test_rules_and_the_drop_in_are_judged_by_the_same_accuracy():
    from limes.compat.lime.lime_tabular import LimeTabularExplainer

    def uneven(x):
        return 0.5 * x[:, 0] + 0.3 * x[:, 1] * x[:, 2] + 0.2 * np.prod(x, axis=1)

    few = limes.SparseExplainer(uneven, k=2, samples=60, fresh=60, rng=0)([[1.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
    assert not reaches(few.coefficients, 0.015)
    assert not few.converged

    lime = LimeTabularExplainer(X, mode="regression", engine="lime", random_state=0)
    explanation = lime.explain_instance(X[0], bent, num_samples=300).limes
    assert not reaches(explanation.coefficients, 0.015)
    assert not explanation.converged


def test_row_converged_survives_json():
    frame = pd.DataFrame(X, columns=list("abcde"))
    explanation = limes.TabularExplainer(lambda x: rare(x.to_numpy()), frame, rng=0)(frame.iloc[:3])
    assert not explanation.row_converged.any()
    assert explanation.provenance["tolerance"] == "1.5%"
    again = limes.Explanation.from_json(explanation.to_json())
    assert not again.converged
