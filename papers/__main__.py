"""``python -m papers [PAPER ...]``: make the figures again, and compare their numbers with the expected ones.

A paper is a folder with ``figures.py``: its INTRODUCTION, and FIGURES, name -> function from the number of
repeated runs to what is drawn. ``--write`` writes expected.json, RESULTS.md and the pictures.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from papers.common import expected
from papers.common.drawn import Drawn

HERE = Path(__file__).parent
PICTURES = HERE.parent / "docs" / "papers"
RUNS = 100
_DOTS = 100
_LARGEST = 100_000


def main() -> None:
    asked = _options()
    wrong = [line for name in asked.papers for line in _paper(name, asked)]
    print("\n".join(wrong) or ("written" if asked.write else "all numbers are as expected"))
    sys.exit(bool(wrong))


def _paper(name: str, asked: argparse.Namespace) -> list[str]:
    from tqdm.auto import tqdm

    paper = import_module(f"papers.{name}.figures")
    figures = {f: make for f, make in paper.FIGURES.items() if not asked.figures or f in asked.figures}
    drawn = {f: make(asked.runs) for f, make in tqdm(figures.items(), desc=name)}
    if asked.write:
        _write(name, paper, drawn)
        return []
    known = expected.read(HERE / name / "expected.json")
    return [
        f"{name}, figure {figure}: {line}"
        for figure, result in drawn.items()
        for line in expected.differences(result.numbers, known.get(figure, {}))
    ]


def _write(name: str, paper: ModuleType, drawn: dict[str, Drawn]) -> None:
    """Numbers, pictures and the page that shows them, of all figures."""
    for figure, result in drawn.items():
        _save(result, PICTURES / name / f"figure-{figure}.png")
    expected.write(HERE / name / "expected.json", {f: expected.plain(d.numbers) for f, d in drawn.items()})
    pictures = f"../../docs/papers/{name}"
    blocks = [
        f"## Figure {figure}\n\n![figure {figure}]({pictures}/figure-{figure}.png)\n\n{result.text}"
        for figure, result in drawn.items()
    ]
    (HERE / name / "RESULTS.md").write_text("\n\n".join([paper.INTRODUCTION.strip(), *blocks]) + "\n")


def _save(drawn: Drawn, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.figure.savefig(path, dpi=_DOTS, facecolor="white")
    if path.stat().st_size > _LARGEST:
        raise SystemExit(f"{path} has {path.stat().st_size:,} bytes, more than {_LARGEST:,}")


def _options() -> argparse.Namespace:
    there = sorted(path.parent.name for path in HERE.glob("*/figures.py"))
    parser = argparse.ArgumentParser(prog="python -m papers", description=__doc__)
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=f"of {', '.join(there)}; default: all")
    parser.add_argument("--figures", nargs="*", default=[], help="only these")
    parser.add_argument("--runs", type=int, default=RUNS, help="repeated runs a box")
    parser.add_argument("--write", action="store_true", help="what is found is what is expected from now on")
    asked = parser.parse_args()
    if unknown := set(asked.papers) - set(there):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(there)}")
    if asked.write and (asked.figures or asked.runs != RUNS):
        parser.error("--write is for all figures with all their runs")
    asked.papers = asked.papers or there
    return asked


if __name__ == "__main__":
    main()
