"""Classifiers and regressors behind a link, from the form of their margin."""

from __future__ import annotations

from limes.exceptions import InputError
from limes.models.forms.base import Form
from limes.models.forms.linked import Linked
from limes.models.reading import CannotRead


def linked(margin: Form, link: str) -> Linked:
    """link(margin), an output for each margin.

    Raises
    ------
    CannotRead
        If the margin is not a sum of functions of one column each.
    """
    try:
        return Linked(margin, link)
    except InputError as error:
        raise CannotRead(
            f"behind the {link} link sums of effects of single columns are read: {error}; the margin is read "
            "exactly with output='margin'"
        ) from error


def probabilities(margin: Form, link: str = "logistic") -> Form:
    """The probabilities of two classes, 1 - link(margin) and link(margin).

    Raises
    ------
    CannotRead
        If the margin is not a sum of functions of one column each.
    """
    return Linked(linked(margin, link).margin, link, [[-1.0, 1.0]], [1.0, 0.0])
