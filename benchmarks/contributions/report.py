"""Tables of what was measured, for its page."""

from __future__ import annotations

# Times that limes wants to be faster a row than shap, path-dependent and against 100 rows, by a piece of the
# case's name; and milliseconds a row
FASTER = {"forest": (30.0, 20.0), "XGBoost": (10.0, None), "LightGBM": (10.0, None)}
ONE_ROW, LOGISTIC = 5.0, 1.0


def text(result: dict) -> str:
    """Markdown."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    lines = [
        f"Machine: {result['machine']}, load {result['load_at_the_end']:.1f} at the end. Medians of "
        f"new processes, in turn; {versions}. `{result['command']}`",
        "",
        "| case | engine | processes | rows | ready, s | ms a row: call and contributions "
        "| of it contributions | CPU, ms: both | contributions | one row, ms | CPU | peak, MB |",
        "|---" * 12 + "|",
    ]
    for case in result["cases"]:
        for engine, timing in case["engines"].items():
            whole, one = timing["whole"], timing["one row"]
            # shap has no call before its values
            parts = ["" if engine.startswith("shap") else _ms(part) for part in timing["account"]]
            lines.append(
                f"| {case['case']} | {engine} | {case['rounds']} | {timing['rows']:,} "
                f"| {timing['prepare'][0]:.2f} | {_ms(whole[0])} | {parts[0]} | {_ms(whole[1])} | {parts[1]} "
                f"| {_ms(one[0])} | {_ms(one[1])} | {timing['peak_mb']:.0f} |"
            )
    lines += [
        "",
        "| times faster a row | case | clock, call and contributions | CPU | CPU, contributions "
        "| goal, clock | |",
    ]
    lines.append("|---" * 7 + "|")
    for case in result["cases"]:
        for pair, ratio in case["ratios"].items():
            lines.append(_ratio(case["case"], pair, ratio))
        if "apart" in case:
            apart = f"{case['apart']:.0e} of the largest apart"
            lines.append(f"| limes, joint law, and shap, 100 rows | {case['case']} | {apart} | | | | |")
    return "\n".join([*lines, "", *_goals(result)])


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.3g}"


def _ratio(case: str, pair: str, ratio: dict) -> str:
    goals = next((goals for piece, goals in FASTER.items() if piece in case), (None, None))
    goal = {"limes / shap": goals[0], "limes / shap, 100 rows": goals[1]}.get(pair)
    (clock, cpu), (_, account) = ratio["whole"], ratio["account"]
    numbers = f"| {pair} | {case} | {clock:.3g} | {cpu:.3g} | {account:.3g} |"
    if goal is None:
        return f"{numbers} | |"
    return f"{numbers} {goal:g} | {'reached' if clock >= goal else '**missed**'} |"


def _goals(result: dict) -> list[str]:
    """One row alone, and a batch of logistic probabilities."""
    lines = ["| | measured, ms | goal | |", "|---" * 4 + "|"]
    for case in result["cases"]:
        timing = case["engines"]["limes"]
        if "forest" in case["case"]:
            lines.append(_goal(f"one row alone, clock: {case['case']}", timing["one row"][0], ONE_ROW))
        if "logistic" in case["case"]:
            lines.append(_goal(f"a row of a batch, clock: {case['case']}", timing["whole"][0], LOGISTIC))
    return lines


def _goal(what: str, seconds: float, goal: float) -> str:
    reached = "reached" if 1000 * seconds <= goal else "**missed**"
    return f"| {what} | {_ms(seconds)} | {goal:g} | {reached} |"
