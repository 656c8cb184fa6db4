"""The pictures of README.md and of the first pages: ``python docs/pictures.py`` writes them into docs/images.

One forest, one tumour: what the prediction is made of, what would change it, all rows, and the page that moves values.
It needs playwright and Chromium.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import skops.io
from matplotlib import pyplot as plt
from PIL import Image
from playwright.sync_api import Page, sync_playwright
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import limes

mpl.use("agg")
HOME = Path(__file__).parent / "images"
CASE = 157


def draw_account(explanation: limes.Explanation) -> None:
    """Draw what one prediction is made of."""
    figure, axes = plt.subplots(figsize=(9.0, 4.6), layout="constrained")
    explanation.plot.waterfall(ax=axes)
    figure.savefig(HOME / "account.png", dpi=130)


def take(page: Page, name: str, **options: Any) -> None:
    """Write a picture of a page, in few colours."""
    path = HOME / f"{name}.png"
    page.screenshot(path=path, **options)
    Image.open(path).convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(path, optimize=True)


@contextmanager
def app(folder: Path) -> Iterator[str]:
    """Serve ``limes app`` and yield its address."""
    names = ["model.skops", "rows.csv", "--background", "background.csv", "--id", "case", "--output", "malignant"]
    command = [sys.executable, "-u", "-m", "limes", "app", *names, "--no-browser"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield next(filter(None, (re.search(r"http://\S+", line) for line in process.stdout)))[0]
        finally:
            process.terminate()


def main() -> None:
    """Fit the forest, and write all pictures."""
    data = load_breast_cancer(as_frame=True)
    X, X_test, y, _ = train_test_split(data.data, data.target_names[data.target], random_state=0)
    model = RandomForestClassifier(random_state=0).fit(X, y)
    explanations = limes.TabularExplainer(model, X, output="malignant")(X_test)
    explanation = explanations[X_test.index.get_loc(CASE)]
    draw_account(explanation)
    facts = limes.SparseExplainer(model, literals=limes.Literals.fit(X), output="malignant")
    contrast = facts.contrast(X_test.loc[[CASE]], below=0.5)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        skops.io.dump(model, folder / "model.skops")
        X.to_csv(folder / "background.csv", index=False)
        X_test.rename_axis("case").to_csv(folder / "rows.csv")
        explanations.to_report(folder / "report.html", title="143 tumours")
        limes.decision_page(
            explanation, folder / "decision.html", contrast=contrast, title=f"Case {CASE}", decision="Malignant"
        )
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1360, "height": 900})
        page.goto((folder / "report.html").as_uri())
        page.locator("tr[data-row='13']").click()
        take(page, "report")
        page.set_viewport_size({"width": 760, "height": 900})
        page.goto((folder / "decision.html").as_uri())
        take(page, "decision", full_page=True)
        with app(folder) as address:
            page.set_viewport_size({"width": 1200, "height": 860})
            page.goto(address)
            page.locator("#row").fill(str(CASE))
            page.keyboard.press("Enter")
            for column, value in (("worst radius", "17.62"), ("worst perimeter", "101.9")):
                line = page.locator("#columns > li").filter(has=page.get_by_text(column, exact=True))
                line.locator("input[type=text]").fill(value)
                page.keyboard.press("Enter")
                page.wait_for_timeout(1000)
            page.wait_for_timeout(6000)
            take(page, "what-if")
        browser.close()


if __name__ == "__main__":
    main()
