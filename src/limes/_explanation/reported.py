"""Explanations as interactive reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from limes._explanation.drawing import drawer, write_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Reported:
    """An explanation with a report to click through."""

    def to_report(
        self,
        path: str | Path | None = None,
        *,
        other: Any = None,
        models: Sequence[str] = ("first model", "second model"),
        diagnosis: Any = False,
        bandwidths: bool | None = None,
        effects: bool | None = None,
        title: str | None = None,
        progress: bool = True,
    ) -> str:
        """Return a self-contained page to click through, and write it to `path` if given.

        It lists all rows, to search, sort and filter, and shows a row's coefficients, waterfall, effects,
        rule and findings. Two rows, or two models, can be put side by side. Where β(ν) is exact, a slider
        moves ν. The page needs no network, and a browser of 2023 or later; :meth:`to_html` makes one without
        any script.

        Parameters
        ----------
        path : str or Path
            The file to write.
        other : Explanation
            An explanation of the same rows and outputs by another model, to compare with.
        models : two texts
            Names of the two models.
        diagnosis : bool, or Diagnosis
            Whether to add the diagnosis of each row by :func:`limes.diagnose`, which calls the model; or the
            diagnosis itself.
        bandwidths : bool
            Whether to add the slider of bandwidths, which calls no model: 25 more explanations of each row.
            By default, for up to 10,000 rows, and 50 where they take long: behind links, as probabilities of
            margins.
        effects : bool
            Whether to add the whole effects of columns. By default, as bandwidths, if they are a million
            numbers at most.
        title : str
            Title in place of the usual one.
        progress : bool
            Show progress bars when it takes more than a second.

        Returns
        -------
        str
            The page. Coefficients have seven digits; those at other bandwidths, and effects, are within
            5e-4 and 2e-4 of the largest of their row.

        Raises
        ------
        InputError
            The explanation has no rows, ``other`` has other rows or outputs, the folder does not exist, or
            ``bandwidths=True`` where coefficients at other bandwidths are not exact.

        Examples
        --------
        >>> import limes
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = RandomForestRegressor(10, max_depth=4, random_state=0).fit(X, y)
        >>> explanation = limes.TabularExplainer(model, X)(X.iloc[:5])
        >>> explanation.to_report(title="Five patients").startswith("<!doctype html>")
        True
        """
        text = drawer("report.page").page(
            self,
            other,
            models=models,
            diagnosis=diagnosis,
            bandwidths=bandwidths,
            effects=effects,
            title=title,
            progress=progress,
        )
        return write_text(text, path)
