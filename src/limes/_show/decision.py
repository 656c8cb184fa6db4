"""One page about one decision, to be read, printed and filed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limes._checks import is_count
from limes._explanation.drawing import write_text
from limes._explanation.fit import account_at
from limes._explanation.selection import single_row
from limes._explanation.view import is_probability, output_position, output_title, row_label
from limes._explanation.wording import number
from limes._show.exports import reasons as reasons_of
from limes._show.html import content_of, render
from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes._explanation import Explanation
    from limes._explanation.rules import Contrast


# Lines of the account: with reasons and a contrast they fill a sheet
_FEATURES = 8


def decision_page(
    explanation: Explanation,
    path: str | Path | None = None,
    *,
    row: int | str = 0,
    output: str | int | None = None,
    decision: str = "",
    reasons: int = 4,
    catalogue: Mapping[str, Any] | None = None,
    contrast: Contrast | None = None,
    title: str | None = None,
) -> str:
    """Return a self-contained page about one row, which prints on a sheet of paper, and write it to `path`.

    It has the decision, the account of the prediction with its warnings, the main reasons, what would have
    changed the outcome, and what the numbers do not say.

    Parameters
    ----------
    explanation
        An explanation of one row or many.
    path
        The file to write.
    row, output
        What the page is about, by position or name. The output is that with the largest prediction, of two
        classes the second, unless given.
    decision
        A sentence on what was decided. The page states the prediction below it.
    reasons, catalogue
        How many reasons, and sentences for them: see :meth:`limes.Explanation.reasons`. They are
        contributions where these are known, or exact and quick, else coefficients.
    contrast
        What ``SparseExplainer.contrast`` found at this row.
    title
        Title of the page, "Decision on" and the row's name unless given.

    Raises
    ------
    InputError
        No row, feature or output has such a name, an option is not valid, or the folder does not exist.

    Examples
    --------
    >>> import limes
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, y)
    >>> explanation = limes.TabularExplainer(model, X)(X.iloc[:2])
    >>> page = limes.decision_page(explanation, row=1, decision="The tumour is referred to the committee.")
    >>> "referred to the committee" in page
    True
    """
    if not is_count(reasons):
        raise InputError(f"decision_page(reasons={reasons!r}): pass a number of reasons, 1 or more")
    one = single_row(explanation, row)
    one = one[..., output_position(one, output)]
    named, label = output_title(one, 0), row_label(one, 0)
    named = "The prediction" if named == "prediction" else named
    has_account = account_at(one, [0]) is not None
    of = "contributions" if has_account else "coefficients"
    scale = "percentage points" if is_probability(one) else "units"
    sentences = reasons_of(one, reasons, catalogue, 0, 0, "both", of, scale, shown=_FEATURES)
    prediction = float(one.predictions.ravel()[0])
    card = None if contrast is None else contrast._card()  # noqa: SLF001 - as other media draw it
    content = content_of(one, features=_FEATURES) | {
        "page_title": f"Decision on {label}" if title is None else title,
        "decision": decision,
        "stated": f"{named}: {number(prediction, 3)}{_probability(one, prediction)}",
        "raising": [reason for reason in sentences if reason.value > 0],
        "lowering": [reason for reason in sentences if reason.value < 0],
        "output": "the prediction" if named == "The prediction" else named,
        "plain": True,
        "contrast": card,
        "has_account": has_account,
        "classes": (),
    }
    return write_text(render("decision.html", content), path)


def _probability(one: Explanation, prediction: float) -> str:
    """What log-odds of two classes mean, "" for other outputs."""
    if one.provenance.get("quantity") != "log-odds":
        return ""
    from scipy.special import expit

    return f", a probability of {number(float(expit(prediction)), 3)}"
