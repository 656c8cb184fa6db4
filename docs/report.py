"""The pictures of pages in docs/images: ``python docs/report.py`` writes report.png, card.png and decision.png.

It needs playwright and Chromium.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import limes

HOME = Path(__file__).parent / "images"


def main() -> None:
    """Write the pages, open them, take their pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        patients = limes.TabularExplainer(RandomForestRegressor(100, random_state=0).fit(X, y), X)
        patients(X).to_report(Path(folder) / "report.html", title="442 patients")
        take(browser, Path(folder) / "report.html", (1360, 900), click="tr[data-row='16']")
        patients(X.iloc[[3]]).to_html(Path(folder) / "card.html")
        take(browser, Path(folder) / "card.html", (760, 455))
        data = load_breast_cancer(as_frame=True)
        X, labels = data.data.iloc[:, :10], data.target_names[data.target]
        model = RandomForestClassifier(50, min_samples_leaf=5, random_state=0).fit(X, labels)
        row = X.iloc[[10]]
        limes.decision_page(
            limes.TabularExplainer(model, X)(row),
            Path(folder) / "decision.html",
            decision="Referred to the committee.",
            contrast=limes.SparseExplainer(model, literals=limes.Literals.fit(X)).contrast(row, below=0.5),
        )
        take(browser, Path(folder) / "decision.html", (820, 1040))
        browser.close()


def take(browser: Browser, path: Path, size: tuple[int, int], click: str = "") -> None:
    """Write the picture of a page, in 64 colours."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.goto(path.as_uri())
    if click:
        page.locator(click).click()
    picture = HOME / f"{path.stem}.png"
    page.screenshot(path=picture)
    few = Image.open(picture).convert("P", palette=Image.Palette.ADAPTIVE, colors=64)
    few.save(picture, optimize=True)


if __name__ == "__main__":
    main()
