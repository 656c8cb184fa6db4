"""Try an installed limes as a new user would, outside the checkout: ``try_installed.py README.md``.

Checks what an index and an auditor read: the description, the notices and the SBOM. Runs every Python example
of the README, and the page of ``limes app`` on a small forest. Uses nothing of the checkout but the README.
"""

import json
import re
import subprocess
import sys
from importlib.metadata import distribution
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


def try_metadata() -> str:
    """Check that links are absolute and notices name all that is compiled in, and return what that is."""
    limes = distribution("limes")
    described = limes.read_text("METADATA") or ""
    relative = [
        link for link in re.findall(r"\]\(([^)\s]+)\)", described) if not link.startswith(("http", "#"))
    ]
    assert relative == [], f"links that an index cannot follow: {relative}"  # noqa: S101
    licences = [name for name in described.splitlines() if name.startswith("License-File: licenses/")]
    notices = limes.read_text("licenses/THIRD_PARTY_NOTICES.md") or ""
    for line in licences:
        name = line.removeprefix("License-File: ")
        assert f"]({name})" in notices, f"the notices do not name {name}"  # noqa: S101
        assert limes.read_text(f"licenses/{name}"), f"{name} is not in the wheel"  # noqa: S101
    bill = json.loads(limes.read_text("sboms/limes.cdx.json") or "")
    assert bill["metadata"]["component"]["version"] == limes.version  # noqa: S101
    assert licences  # noqa: S101
    assert bill["components"]  # noqa: S101
    for part in bill["components"]:
        assert part["name"] in notices, f"the notices do not name {part['name']}"  # noqa: S101
    return ", ".join(f"{part['name']} {part.get('version', '')}" for part in bill["components"])


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


print(f"compiled in and named in the notices: {try_metadata()}")
print(f"{try_readme(Path(sys.argv[1]))} parts of the README run")
print(f"limes app answers: {try_app()}")
