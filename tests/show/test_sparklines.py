"""Effects as small pictures in a page, read back from its SVG paths."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, Y = load_diabetes(return_X_y=True, as_frame=True)
MODEL = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, Y)
CURVE = re.compile(r'<svg class="c" viewBox="0 0 (\d+) 16"[^>]*><rect x="(\d+)"/><path d="([^"]*)"/>')


def heights(path):
    """Height of each step, from -1 to 1, and NaN where the path is broken."""
    steps = {}
    for x, y, end in re.findall(r"(?:M(\d+) |V)([\d.]+)H(\d+)", path):
        assert not x or int(x) == int(end) - 1
        steps[int(end) - 1] = (8 - float(y)) / 7
    return steps


def test_a_line_over_the_cells_has_the_heights_of_the_effect():
    explanation = limes.TabularExplainer(MODEL, X, bins="decile")(X.iloc[[3]])
    curves = CURVE.findall(explanation.to_html())
    order = np.argsort(-np.abs(explanation.coefficients.values[0]), kind="stable")
    effects = [explanation.effects[j] for j in order]
    assert len(curves) == len(effects) == X.shape[1]
    largest = max(np.abs(effect.values).max() for effect in effects)
    for (count, current, path), effect in zip(curves, effects, strict=True):
        assert (int(count), int(current)) == (len(effect.cells), effect.current)
        # drawn to a tenth of a unit of 7
        drawn = heights(path)
        assert [drawn[b] for b in range(len(effect.cells))] == pytest.approx(
            effect.values / largest, abs=0.008
        )


def test_each_output_has_its_curves():
    def two(x):
        return np.column_stack([x[:, 2], -x[:, 2]])

    explanation = limes.TabularExplainer(two, X.to_numpy(), max_calls=512, control="none")(X.to_numpy()[:1])
    curves = CURVE.findall(explanation.to_html())
    first, second = (heights(curves[k * X.shape[1]][2]) for k in range(2))
    assert first == pytest.approx({b: -height for b, height in second.items()}, abs=0.02)
    assert max(first.values()) > 0.5


def test_slopes_have_curves_of_slices():
    slopes = limes.TabularExplainer(MODEL, X, bins=None)(X.iloc[[3]])
    curves = CURVE.findall(slopes.to_html())
    assert len(curves) == X.shape[1]
    effect = slopes.effects["bmi"]
    of_bmi = max(curves, key=lambda curve: np.ptp(list(heights(curve[2]).values())))
    assert (int(of_bmi[0]), int(of_bmi[1])) == (10, effect.current)


def test_files_have_no_curves():
    read = limes.Explanation.from_json(limes.TabularExplainer(MODEL, X)(X.iloc[[3]]).to_json())
    html = read.to_html()
    assert "lx-lines" in html
    assert not CURVE.findall(html)
