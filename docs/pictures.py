"""The pictures of README.md and of pages in docs/images: ``python docs/pictures.py`` writes them all.

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
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import train_test_split

import limes

mpl.use("agg")
HOME = Path(__file__).parent / "images"
CASE = 157
# Values of the contrast that the page shows, moved in the app
MOVED = {"worst radius": "17.62", "worst perimeter": "101.9"}


def main() -> None:
    """Explain a tumour and a patient, and write all pictures."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    patient = limes.TabularExplainer(RandomForestRegressor(random_state=0).fit(X, y), X)(X.iloc[[3]])
    draw_two_questions(patient)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        write_pages_of_tumours(folder)
        patient.to_html(folder / "card.html")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        open_page(page, folder / "card.html", 760, 455)
        take(page, "card")
        open_page(page, folder / "decision.html", 760, 900)
        take(page, "decision", full_page=True)
        open_page(page, folder / "report.html", 1360, 900)
        page.locator("tr[data-row='13']").click()
        take(page, "report")
        with app(folder) as address:
            page.set_viewport_size({"width": 1200, "height": 860})
            page.goto(address)
            move_values(page)
            take(page, "what-if")
        browser.close()


def draw_two_questions(explanation: limes.Explanation) -> None:
    """Draw the contributions and the coefficients of one row side by side."""
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.9), layout="constrained")
    explanation.plot.waterfall(ax=axes[0], title="Contributions", max_features=5)
    explanation.coefficients.plot.bar(ax=axes[1], title="Coefficients", max_features=5)
    figure.savefig(HOME / "two-questions.png", dpi=130)


def write_pages_of_tumours(folder: Path) -> None:
    """Draw the account of one tumour, and write its page, the report of all, and what the app reads."""
    data = load_breast_cancer(as_frame=True)
    X, X_test, y, _ = train_test_split(data.data, data.target_names[data.target], random_state=0)
    model = RandomForestClassifier(random_state=0).fit(X, y)
    explanations = limes.TabularExplainer(model, X, output="malignant")(X_test)
    explanations.to_report(folder / "report.html", title="143 tumours")
    explanation = explanations[X_test.index.get_loc(CASE)]
    figure, axes = plt.subplots(figsize=(9.0, 4.6), layout="constrained")
    explanation.plot.waterfall(ax=axes)
    figure.savefig(HOME / "account.png", dpi=130)
    facts = limes.SparseExplainer(model, literals=limes.Literals.fit(X), output="malignant")
    limes.decision_page(
        explanation,
        folder / "decision.html",
        contrast=facts.contrast(X_test.loc[[CASE]], below=0.5),
        title=f"Case {CASE}",
        decision="Malignant",
    )
    skops.io.dump(model, folder / "model.skops")
    X.to_csv(folder / "background.csv", index=False)
    X_test.rename_axis("case").to_csv(folder / "rows.csv")


@contextmanager
def app(folder: Path) -> Iterator[str]:
    """Serve ``limes app`` and yield its address."""
    command = [sys.executable, "-u", "-m", "limes", "app", "model.skops", "rows.csv", "--no-browser"]
    command += ["--background", "background.csv", "--id", "case", "--output", "malignant"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield next(filter(None, (re.search(r"http://\S+", line) for line in process.stdout)))[0]
        finally:
            process.terminate()


def open_page(page: Page, path: Path, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.goto(path.as_uri())


def move_values(page: Page) -> None:
    """Choose the tumour in the app, and move two of its values."""
    page.locator("#row").fill(str(CASE))
    page.keyboard.press("Enter")
    for column, value in MOVED.items():
        line = page.locator("#columns > li").filter(has=page.get_by_text(column, exact=True))
        line.locator("input[type=text]").fill(value)
        page.keyboard.press("Enter")
        page.wait_for_timeout(1000)
    page.wait_for_timeout(6000)  # rule and diagnosis follow the prediction


def take(page: Page, name: str, **options: Any) -> None:
    """Write a picture of the page, in few colours."""
    path = HOME / f"{name}.png"
    page.screenshot(path=path, **options)
    Image.open(path).convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(path, optimize=True)


if __name__ == "__main__":
    main()
