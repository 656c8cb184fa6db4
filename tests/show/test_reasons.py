from __future__ import annotations

import pytest

from limes.exceptions import InputError
from samples import explanation


def of(values, errors=None, **options):
    return explanation(
        d=len(values), values=[values], standard_errors=[errors or [0.0] * len(values)], **options
    )


def test_reasons_are_sentences_by_falling_size():
    first, second = of([1.0, -3.0, 0.5]).reasons(2)
    assert first == "sex <= 0.5 lowers progression by 3"
    assert second == "age <= 0.5 raises progression by 1"
    assert (first.feature, first.value, first.certain) == ("sex", -3.0, True)


def test_the_catalogue_has_sentences_of_the_house():
    e = of([1.0, -3.0], data=[[52, "male"]])
    catalogue = {"age": "You are {value}.", "sex": ("{condition} helps", "{condition} hurts")}
    assert e.reasons(catalogue=catalogue) == ("sex <= 0.5 hurts", "You are 52.")
    assert e.reasons(catalogue=catalogue, sign="+") == ("You are 52.",)


def test_an_order_that_noise_could_turn_is_marked():
    reasons = of([3.0, 2.9, 1.0, 0.1], [0.1, 0.1, 0.1, 0.1], method="sampled").reasons()
    assert [reason.certain for reason in reasons] == [False, False, True, False]  # the last may be 0
    assert reasons[0].endswith("(order not certain)")
    assert "certain" not in reasons[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k is the number"),
        ({"sign": "x"}, "sign='x'"),
        ({"catalogue": {"agee": "x"}}, "did you mean 'age'"),
        ({"catalogue": {"age": 3}}, "pass a text, or a pair"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(InputError, match=message):
        of([1.0, 2.0]).reasons(**options)
