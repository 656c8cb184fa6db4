"""``python -m benchmarks [PART ...]``: run the parts named, or all; write results/, pages/ and README.md.

Without names, parts that were measured since the library's code changed last are left out, so that
an interrupted run resumes.
``--rounds``, ``--seeds`` and ``--cases`` make a short run, which is printed and changes no file.
"""

from __future__ import annotations

import argparse
from importlib import import_module

from benchmarks import readme

# Parts, each a package with ``run.measure`` and ``report``; and the options by which a run is made short
PARTS = {
    "tables": (),
    "links": ("rounds",),
    "speed": ("rounds", "cases"),
    "kernels": ("rounds", "cases"),
    "contributions": ("rounds", "cases"),
    "accuracy": ("seeds", "cases"),
    "black_boxes": ("seeds", "cases"),
    "pool_coverage": ("seeds", "cases"),
    "one_row": ("rounds", "cases"),
    "first_row": ("rounds", "cases"),
    "serving": ("rounds", "cases"),
    "joint": ("cases",),
    "covers": ("rounds", "cases"),
    "pairs": ("rounds", "cases"),
    "contributions_sampled": ("seeds", "cases"),
    "coverage": ("seeds", "cases"),
    "at_the_row": ("cases",),
    "large": ("rounds", "cases"),
    "stability": ("seeds", "cases"),
    "quality": ("seeds", "cases"),
    "sparse": (),
    "holding": ("cases",),
    "anchors": ("cases",),
    "certain": ("cases",),
    "cover": ("cases",),
    "contrasts": ("cases",),
    "fit": ("cases",),
    "diagnostics": (),
    "text": ("rounds", "seeds"),
    "networks": ("rounds",),
    "images": ("seeds", "cases"),
    "levels": (),
    "photographs": ("cases",),
    "few_calls": (),
    "prompts": ("seeds", "cases"),
    "scale": ("rounds", "cases"),
    "drop_in": ("cases",),
    "report": ("rounds",),
    "shown": ("cases",),
    "letters": ("cases",),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--rounds", type=int, help="rounds of speed and text, for a short run")
    parser.add_argument("--seeds", type=int, help="seeds of all other parts, for a short run")
    parser.add_argument("--cases", default="", help="only cases with this in their name, for a short run")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for part in arguments.parts or [part for part in PARTS if not readme.is_of_this_version(part)]:
        _run(part, arguments)


def _run(part: str, arguments: argparse.Namespace) -> None:
    run, report = (import_module(f"benchmarks.{part}.{name}") for name in ("run", "report"))
    options = {option: getattr(arguments, option) for option in PARTS[part] if getattr(arguments, option)}
    result = run.measure(**options)
    if options:
        print(report.text(result))
        return
    readme.save(part, result)
    picture = f"\n\n{report.draw(result)}" if hasattr(report, "draw") else ""
    readme.replace(part, report.text(result) + picture)
    if hasattr(run, "finish"):
        run.finish()


# Processes that measure memory are spawned, and import this file again.
if __name__ == "__main__":
    main()
