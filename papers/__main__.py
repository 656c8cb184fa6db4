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

FOLDER = Path(__file__).parent
PICTURES = FOLDER.parent / "docs" / "papers"
RUNS = 100
_DOTS = 100
_LARGEST = 100_000


def main() -> None:
    arguments = _options()
    wrong = [line for name in arguments.papers for line in _paper(name, arguments)]
    print("\n".join(wrong) or ("written" if arguments.write else "all numbers are as expected"))
    sys.exit(bool(wrong))


def _paper(name: str, arguments: argparse.Namespace) -> list[str]:
    from tqdm.auto import tqdm

    paper = import_module(f"papers.{name}.figures")
    figures = {
        f: make for f, make in paper.FIGURES.items() if not arguments.figures or f in arguments.figures
    }
    drawn = {f: make(arguments.runs) for f, make in tqdm(figures.items(), desc=name)}
    if arguments.write:
        _write(name, paper, drawn)
        return []
    expected_numbers = expected.read(FOLDER / name / "expected.json")
    return [
        f"{name}, figure {figure}: {line}"
        for figure, result in drawn.items()
        for line in expected.differences(result.numbers, expected_numbers.get(figure, {}))
    ]


def _write(name: str, paper: ModuleType, drawn: dict[str, Drawn]) -> None:
    """Numbers, pictures and the page that shows them, of all figures."""
    for figure, result in drawn.items():
        _save(result, PICTURES / name / f"figure-{figure}.png")
    expected.write(FOLDER / name / "expected.json", {f: expected.plain(d.numbers) for f, d in drawn.items()})
    pictures = f"../../docs/papers/{name}"
    blocks = [
        f"## Figure {figure}\n\n![figure {figure}]({pictures}/figure-{figure}.png)\n\n{result.text}"
        for figure, result in drawn.items()
    ]
    (FOLDER / name / "RESULTS.md").write_text("\n\n".join([paper.INTRODUCTION.strip(), *blocks]) + "\n")


def _save(drawn: Drawn, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.figure.savefig(path, dpi=_DOTS, facecolor="white")
    if path.stat().st_size > _LARGEST:
        raise SystemExit(f"{path} has {path.stat().st_size:,} bytes, more than {_LARGEST:,}")


def _options() -> argparse.Namespace:
    names = sorted(path.parent.name for path in FOLDER.glob("*/figures.py"))
    parser = argparse.ArgumentParser(prog="python -m papers", description=__doc__)
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=f"of {', '.join(names)}; default: all")
    parser.add_argument("--figures", nargs="*", default=[], help="only these")
    parser.add_argument("--runs", type=int, default=RUNS, help="repeated runs a box")
    parser.add_argument("--write", action="store_true", help="what is found is what is expected from now on")
    arguments = parser.parse_args()
    if unknown := set(arguments.papers) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if arguments.write and (arguments.figures or arguments.runs != RUNS):
        parser.error("--write is for all figures with all their runs")
    arguments.papers = arguments.papers or names
    return arguments


if __name__ == "__main__":
    main()
