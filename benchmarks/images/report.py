"""Tables of what was measured, for its page."""

from __future__ import annotations

import numpy as np

from benchmarks.images.accuracy import CALLS as TRUE_CALLS
from benchmarks.images.accuracy import LIME_CALLS, LIMES_CALLS, RUNS
from benchmarks.images.overhead import CALLS


def text(result: dict) -> str:
    """Markdown."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    return "\n\n".join(
        [
            f"Machine: {result['machine']}. {versions}.",
            *_overhead(result["overhead"]),
            *_accuracy(result["accuracy"]),
        ]
    )


def _overhead(result: dict) -> list[str]:
    lines = [
        '| model, superpixels | limes | limes, `control="none"` | `lime` | times limes |',
        "|---|---|---|---|---|",
    ]
    for name, case in result["trivial"].items():
        ours, plain, lime = case["limes"], case["limes, no control"], case["lime"]
        ratios = f"{lime / ours:.1f}; {lime / plain:.1f}"
        lines.append(
            f"| trivial, {name}: {case['superpixels']} | {ours:.3f} | {plain:.3f} | {lime:.2f} | {ratios} |"
        )
    network = result["network"]
    ours, lime, forward = (network[who] for who in ("limes", "lime", "forward"))
    lines.append(f"| EfficientNet-Lite0 | {ours:.2f} | | {lime:.2f} | {lime / ours:.1f} |")
    peaks = {who: result["memory"][who]["peak_mb"] for who in ("limes", "lime")}
    return [
        f"**Overhead**, CPU seconds at {CALLS:,} samples of 224 x 224, segmentation not counted",
        "\n".join(lines),
        f"The network itself took {forward:.1f} s: limes adds {ours / forward:.1%} (goal: 10 %), `lime` "
        f"{lime / forward:.1%}. Peak memory above a network that has answered one batch of 64: limes "
        f"{peaks['limes']:.0f} MB (goal: 200 MB), `lime` {peaks['lime']:.0f} MB.",
    ]


def _accuracy(cases: list[dict]) -> list[str]:
    head = " | ".join(f"limes, {calls}" for calls in LIMES_CALLS)
    lines = [
        f"| network, photograph | class | d | seeds | {head} | top 5 differ: `lime`, limes | in 95 % bars |",
        "|---" * (6 + len(LIMES_CALLS)) + "|",
    ]
    lines += [_line(case) for case in cases]
    networks = dict.fromkeys(case["network"] for case in cases)
    lines += [_mean(name, [case for case in cases if case["network"] == name]) for name in networks]
    lines += [_mean("all", cases)] if len(networks) > 1 else []
    return [
        f"**Error at fewer calls**: squared error of all coefficients over `lime`'s with {LIME_CALLS:,} "
        f"calls; below 1 limes is nearer to the truth, which is {RUNS} x {TRUE_CALLS} calls",
        "\n".join(lines),
    ]


def _mean(name: str, cases: list[dict]) -> str:
    means = (float(np.mean([_share(case, calls) for case in cases])) for calls in LIMES_CALLS)
    return f"| mean, {name} | | | | {' | '.join(f'**{mean:.2f}**' for mean in means)} | | |"


def _share(case: dict, calls: int) -> float:
    return case["errors"][f"limes {calls}"] / case["errors"][f"lime {LIME_CALLS}"]


def _line(case: dict) -> str:
    shares = " | ".join(f"{_share(case, calls):.2f}" for calls in LIMES_CALLS)
    differ = case["top_differs"]
    stable = f"{differ[f'lime {LIME_CALLS}']:.0%}, {differ[f'limes {LIMES_CALLS[-1]}']:.0%}"
    who = (
        f"{case['network']}, {case['photograph']} | {case['label']} | {case['superpixels']} | {case['seeds']}"
    )
    return f"| {who} | {shares} | {stable} | {case['covered']:.0%} |"
