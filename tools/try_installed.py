"""Try an installed limes as a new user would, outside the checkout: ``try_installed.py README.md``.

Runs every Python example of the README, and the page of ``limes app`` on a small forest. Uses nothing of the
checkout but the README.
"""

import re
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

# As on all pages: examples share their names, and a comment has what a reader has already
EXAMPLE = re.compile(r"^<!-- reader has\n(.*?)-->|^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILES = """
import skops.io
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
skops.io.dump(RandomForestRegressor(10, random_state=0).fit(X, y), "model.skops")
X.to_parquet("table.parquet")
"""


def try_readme(path: Path) -> int:
    """Run the examples in their order, and return their number."""
    names = {"__name__": "example"}
    parts = [prepared or example for prepared, example in EXAMPLE.findall(path.read_text(encoding="utf-8"))]
    for part in parts:
        exec(compile(part, str(path), "exec"), names)  # noqa: S102 - our README
    return len(parts)


def try_app() -> str:
    """Serve the page, load it and its files, and return the prediction that it shows."""
    exec(FILES, {})  # noqa: S102 - above
    command = [sys.executable, "-m", "limes", "app", "model.skops", "table.parquet", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 - limes
        try:
            assert server.stdout is not None  # noqa: S101
            address = re.search(r"http://\S+", server.stdout.readline())[0]
            for name in ("", "app.js", "app.css", "api/table"):
                assert urlopen(address + name).status == 200  # noqa: S101, S310
            return urlopen(address + "api/row?row=3").read().decode()  # noqa: S310
        finally:
            server.terminate()


print(f"{try_readme(Path(sys.argv[1]))} parts of the README run")
print(f"limes app answers: {try_app()}")
