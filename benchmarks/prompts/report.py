"""A table of what was measured, for its page."""

from __future__ import annotations


def text(result: dict) -> str:
    """Markdown."""
    head = (
        "| prompt of ten sources | calls | squared error: limes | LASSO | leave one out (11 calls) "
        "| covered by 95 % | of the five largest | the sources that a reader names lead: limes | LASSO "
        "| leave one out |"
    )
    lines = [line for question in result["questions"] for line in _lines(question)]
    return "\n\n".join(
        [
            f"Machine: {result['machine']}. {result['seeds']} seeds; the truth is from all 1,024 subsets.",
            "\n".join([head, "|---" * 10 + "|", *lines]),
            _speed(result["speed"]),
        ]
    )


def _lines(question: dict) -> list[str]:
    alone = question["error of leaving one out"]
    return [
        f"| {question['question']} | {its['calls']} | {its['error']:.4f} | {its['error of lasso']:.4f} "
        f"| {alone:.3f} | {its['covered']:.0%} | {its['covered, five largest']:.0%} | {_share(its['leads'])} "
        f"| {_share(its['leads of lasso'])} | {_share(question['leads of leaving one out'])} |"
        for its in question["by calls"]
    ]


def _speed(speed: dict) -> str:
    its, plain, one = speed["ways"]
    seconds, memory = its["CPU seconds"], its["megabytes"]
    of_plain, of_one = seconds / plain["CPU seconds"], memory / one["megabytes"]
    return (
        f"A prompt of {speed['tokens']:,} tokens, half of them before its {speed['sources']} sources, at "
        f"{speed['calls']} calls: {seconds} s of CPU, {of_plain:.2f} of as many passes over whole prompts; "
        f"{memory:.0f} MB, {of_one:.2f} of one pass with as many tokens ({speed['machine']}, one thread)."
    )


def _share(share: float | None) -> str:
    return "none is named" if share is None else f"{share:.0%}"
