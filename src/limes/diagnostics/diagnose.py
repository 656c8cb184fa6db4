"""From an explanation to its diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from limes._arrays import Ints
from limes.diagnostics.diagnosis import Diagnosis, RowDiagnosis
from limes.diagnostics.kinds import KINDS
from limes.diagnostics.scene import Scene
from limes.exceptions import InputError
from limes.explanation import Explanation

# Rows diagnosed together: samples of 4096 rows of 30 columns are 200 MB
_BLOCK = 100


def diagnose(
    explanation: Explanation,
    explainer: Any = None,
    *,
    output: str | int | None = None,
    calls: int | None = None,
    progress: bool = True,
) -> Diagnosis:
    """Say when an explanation should not be trusted: numbers, sentences, advice.

    Coefficients at other bandwidths, averages of the model in each bin, and what changes at a bin's edge are
    exact where the explanation is exact; variances are sampled. Everything is sampled, with standard errors,
    where the model cannot be read. Thresholds are those of the files in ``limes/diagnostics``.

    Parameters
    ----------
    explanation
        Of :class:`limes.TabularExplainer` or :class:`limes.TextExplainer`, with all its features.
    explainer
        What made it; the explanation knows, unless it came from a file.
    output
        Name or position of the output; unless given, the one with the largest prediction of each row.
    calls
        Rows that the model is asked for around each row, beside its explanation: 512 unless given, and 4096
        where it cannot be read.
    progress
        Show a progress bar when it takes more than a second.

    Returns
    -------
    Diagnosis
        ``.findings``, ``.rows``, ``.to_html()``, ``.to_json()``, ``.plot``; it prints itself.

    Raises
    ------
    InputError
        If the explainer is not known, or is of a kind that has no diagnostics.

    References
    ----------
    Garreau & von Luxburg 2020 and 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import limes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = RandomForestRegressor(10, random_state=0).fit(X, y)
    >>> diagnosis = limes.diagnose(limes.TabularExplainer(model, X)(X.iloc[:2]))
    >>> all(finding.advice for finding in diagnosis.findings)
    True
    """
    maker = explainer if explainer is not None else explanation.explainer
    if not hasattr(maker, "scene"):
        raise InputError(
            "diagnose needs the explainer that made the explanation, a TabularExplainer or a TextExplainer: "
            "limes.diagnose(explanation, explainer)"
        )
    chosen, rows = output_of(explanation, output), []
    with _bar(len(explanation), shown=progress) as done:
        for start in range(0, len(explanation), _BLOCK):
            block = slice(start, start + _BLOCK)
            scene: Scene = maker.scene(explanation[block], output=chosen[block], calls=calls)
            rows += rows_of(scene, start)
            done(len(scene))
    return Diagnosis(tuple(rows), explanation.method)


def rows_of(scene: Scene, first: int = 0) -> list[RowDiagnosis]:
    """Ask every diagnostic that goes with the scene; rows are numbered from ``first``."""
    readings = {name: read(scene) for name, read in KINDS[type(scene)].items()}
    return [
        RowDiagnosis(
            first + i,
            facts,
            {name: each[i] for name, each in readings.items() if each[i] is not None},  # type: ignore[misc]
        )
        for i, facts in enumerate(scene.facts)
    ]


@contextmanager
def _bar(total: int, *, shown: bool) -> Iterator[Callable[[int], object]]:
    from tqdm.auto import tqdm

    with tqdm(total=total, desc="diagnosing", delay=1.0, disable=not shown) as bar:
        yield bar.update


def output_of(explanation: Explanation, output: str | int | None) -> Ints:
    """Position of each row's output, (n,): the one that is named, or that with the largest prediction."""
    predictions = explanation.predictions.reshape(len(explanation), -1)
    if output is None:
        return np.asarray(predictions.argmax(axis=1))
    from limes.show.selection import name_positions

    (position,) = name_positions(output, explanation.output_names, "output")
    return np.full(len(explanation), position)
