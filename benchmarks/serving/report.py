"""Tables of what was measured, for its page."""

from __future__ import annotations

from collections.abc import Iterator

# Goals of the compiled way, milliseconds of CPU a row, by model and law; shares of the clock
GOALS = {
    ("XGBoost 300 x depth 6", "default"): 0.5,
    ("LightGBM 300 x 31", "default"): 0.5,
    ("random forest 100 x depth 10", "default"): 1.5,
    ("XGBoost 300 x depth 6", "joint"): 0.5,
    ("random forest 100 x depth 10", "joint"): 8.0,
}
CLOCK = 1.5


def text(result: dict) -> str:
    """Markdown."""
    lines = [
        f"Machine: {result['machine']}. One thread; medians of {result['rows']} rows, in turn, "
        "milliseconds of CPU a row; 99 % are below the number in brackets.",
        "",
        *_rows(result["cases"]),
        "",
        *_busy(result),
        "",
        *_service(result),
    ]
    return "\n".join(lines)


def _rows(cases: list[dict]) -> Iterator[str]:
    yield (
        "| model | law | `compiled()` | of 64 rows | goal | | `explainer.contributions(row)` "
        "| `explainer(row)`, both readings | the model's `predict` | shap, 100 rows | apart |"
    )
    yield "|---" * 11 + "|"
    for case in cases:
        ms = {way: f"{median:.2f} ({late:.2f})" for way, (median, late) in case["ms"].items()}
        goal = next((g for (m, law), g in GOALS.items() if m in case["model"] and law == case["law"]), None)
        if goal is None and case["model"].startswith("logistic"):
            goal = case["ms"]["predict"][0] + 0.5
        met = "" if goal is None else "reached" if case["ms"]["compiled"][0] <= goal else "missed"
        apart = "" if case["apart"] is None else f"{case['apart']:.0e}"
        yield (
            f"| {case['model']} | {case['law']} | {ms['compiled']} | {case['batch']:.3f} "
            f"| {'' if goal is None else f'{goal:.2f}'} | {met} | {ms['contributions']} | {ms['call']} "
            f"| {ms['predict']} | {ms.get('shap', '')} | {apart} |"
        )


def _busy(result: dict) -> Iterator[str]:
    busy = result["busy"]
    ratio = busy["clock"] / busy["cpu"]
    yield (
        f"{result['served']}, {busy['processes']} processes on as many cores, threads by default: "
        f"{busy['clock']:.2f} ms of the clock a row ({busy['clock p99']:.2f} for 99 %), {busy['cpu']:.2f} ms "
        f"of CPU: {ratio:.2f} times (goal {CLOCK}: {'reached' if ratio <= CLOCK else 'missed'})."
    )


def _service(result: dict) -> Iterator[str]:
    name = f"clients of the service of docs/serving.md, {result['served']}"
    yield f"| {name} | p50, ms | p99, ms | rows a second |"
    yield "|---|---|---|---|"
    for case in result["service"]:
        yield f"| {case['clients']} | {case['p50']:.1f} | {case['p99']:.1f} | {case['a second']:.0f} |"
