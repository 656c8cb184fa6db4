"""The page as a real browser sees it."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestClassifier

import limes

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
EVIL = "</script><script>alert(1);document.title='owned'</script><img src=x onerror=alert(2)>"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: make test-browser installs it"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X = X.rename(columns={"bmi": f"bmi {EVIL}"})
    labels = np.where(y > 150, f"high {EVIL}", "low & <b>quiet</b>")
    model = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, labels)
    path = tmp_path_factory.mktemp("page") / "explanation.html"
    limes.TabularExplainer(model, X)(X.iloc[:1]).to_html(path)
    return path


def browse(page, tmp_path, *options):
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
        *("--no-first-run", f"--user-data-dir={tmp_path / 'profile'}", "--window-size=900,1400"),
        *options,
        page.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def test_table_and_picture_exist_and_nothing_was_injected(page, tmp_path):
    dom = browse(page, tmp_path, "--dump-dom")
    assert "<table" in dom
    assert len(re.findall(r"<(?:rect|svg)\b", dom)) > 10
    assert "<script" not in dom
    assert "onerror=alert" not in re.sub(r"&lt;.*?&gt;", "", dom)
    assert "<title>owned" not in dom
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in dom
    assert "low &amp; &lt;b&gt;quiet&lt;/b&gt;" in dom


def test_the_page_is_small_and_loads_nothing(page):
    text = page.read_text()
    assert len(text.encode()) < 100_000
    harmless = re.sub(r"&lt;.*?&gt;", "", text)
    assert not re.search(r"(?:src|href)\s*=|@import|url\(", harmless)


def test_something_is_drawn(page, tmp_path):
    picture = tmp_path / "page.png"
    browse(page, tmp_path, f"--screenshot={picture}")
    import matplotlib.image

    pixels = matplotlib.image.imread(picture)[..., :3]
    blue = (pixels[..., 2] > 0.6) & (pixels[..., 0] < 0.35)
    orange = (pixels[..., 0] > 0.75) & (pixels[..., 2] < 0.35)
    # two long bars lower the prediction, two short ones raise it; the legend has 100 pixels of either colour
    assert blue.sum() > 1000
    assert orange.sum() > 150
