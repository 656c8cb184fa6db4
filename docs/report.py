"""The picture of docs/report.md: ``python docs/report.py`` writes docs/images/report.png.

It needs playwright and Chromium.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

HOME = Path(__file__).parent / "images"
SIZE = {"width": 1360, "height": 900}


def main() -> None:
    """Write the report, open it, take its picture."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = RandomForestRegressor(100, random_state=0).fit(X, y)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder) / "report.html"
        limes.TabularExplainer(model, X)(X).to_report(path, title="442 patients")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.goto(path.as_uri())
        page.locator("tr[data-row='16']").click()
        page.screenshot(path=HOME / "report.png")
        browser.close()
    Image.open(HOME / "report.png").convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(
        HOME / "report.png", optimize=True
    )


if __name__ == "__main__":
    main()
