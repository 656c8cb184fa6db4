"""Reports of 1, 1,000 and 10,000 rows of 20 columns: size, time to write, time until rows are drawn."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestRegressor

import limes

ROWS = (1, 1_000, 10_000)
_COLUMNS = 20
_DRAWN = "performance.getEntriesByName('report-drawn')[0]?.startTime"


def measure(rounds: int = 5) -> dict:
    """Medians over rounds, each in a browser without a cache."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(max(ROWS), _COLUMNS))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + X[:, 3] * (X[:, 4] > 0) + 0.1 * rng.normal(size=len(X))
    model = RandomForestRegressor(100, max_depth=6, random_state=0).fit(X[:2000], y[:2000])
    explainer = limes.TabularExplainer(model, X)
    with tempfile.TemporaryDirectory() as folder:
        cases = [_case(explainer(X[:n], progress=False), Path(folder) / f"{n}.html", rounds) for n in ROWS]
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load": os.getloadavg()[0],
        "cases": cases,
    }


def _case(explanation: limes.Explanation, path: Path, rounds: int) -> dict:
    start = time.process_time()
    explanation.to_report(path, progress=False)
    written = time.process_time() - start
    times = [_opened(path) for _ in range(rounds)]
    return {
        "rows": len(explanation),
        "bytes": path.stat().st_size,
        "seconds to write": written,
        "ms to open": None if None in times else float(np.median(times)),
        "slowest ms": None if None in times else float(np.max(times)),
    }


def _opened(path: Path) -> float | None:
    """Milliseconds from navigation to the first rows in a new browser; None without one."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if chromium is None:
        return None
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto(path.as_uri())
        page.wait_for_function(_DRAWN)
        milliseconds = float(page.evaluate(_DRAWN))
        browser.close()
    return milliseconds
