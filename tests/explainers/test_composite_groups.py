"""Groups of parts and of features of several inputs against enumeration of their game."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import limes
from coalitions import shapley
from limes import CompositeExplainer, SeriesPart, TablePart
from limes.exceptions import InputError

HOUSES = pd.DataFrame(
    {
        "rooms": [2.0, 3.0, 5.0, 4.0, 2.0],
        "area": [40.0, 55.0, 90.0, 70.0, 45.0],
        "old": [0, 1, 0, 1, 0],
        "new": [1, 0, 1, 0, 1],
    }
)
TYPICAL = {
    "rooms": 3.0,
    "area": 55.0,
    "old": 1,
    "new": 0,
}  # the other value, where the house has the usual one
HOUSE = {"rooms": 5.0, "area": 90.0, "old": 0, "new": 1}
WORDS = ("bright", "sunny", "flat")
PULSE = np.array([1.0, -2.0, 0.5, 3.0])
PARTS = {"advert": "text", "pulse": SeriesPart(count=2, fill=0.0), "house": TablePart(background=HOUSES)}
INPUT = {"advert": "bright sunny flat", "pulse": PULSE, "house": HOUSE}
FEATURES = (
    *("advert: bright", "advert: sunny", "advert: flat", "pulse: 0 to 1", "pulse: 2 to 3"),
    *("house: rooms", "house: area", "house: old", "house: new"),
)


def price(batch):
    """Features of all parts meet in products."""
    light = np.array([("bright" in text) + 0.5 * ("sunny" in text) for text in batch["advert"]])
    house = batch["house"].to_numpy(dtype=float)
    beat = np.abs(batch["pulse"]).max(axis=1)
    return house[:, 0] * (1 + light) + house[:, 1] / 9 + 3 * beat * light + house[:, 3] * house[:, 1] / 20


def game_of(groups):
    """The game of groups of features, by their positions: v(S), (2,) * g + (1,), by the model at each set."""
    shape = (2,) * len(groups)
    batch = {"advert": [], "pulse": [], "house": []}
    for kept in itertools.product((0, 1), repeat=len(groups)):
        shown = {j for on, its in zip(kept, groups, strict=True) if on for j in its}
        batch["advert"].append(" ".join(word for j, word in enumerate(WORDS) if j in shown))
        batch["pulse"].append(PULSE * np.repeat([3 in shown, 4 in shown], 2))
        batch["house"].append({k: (HOUSE if 5 + j in shown else TYPICAL)[k] for j, k in enumerate(HOUSE)})
    batch["pulse"], batch["house"] = np.stack(batch["pulse"]), pd.DataFrame(batch["house"])[[*HOUSE]]
    answers = price(batch)
    v = np.empty(shape, dtype=object)
    for position, answer in zip(itertools.product((0, 1), repeat=len(groups)), answers, strict=True):
        v[position] = np.array([answer])
    return v


GROUPINGS = {
    "parts": ("part", [[0, 1, 2], [3, 4], [5, 6, 7, 8]], ("advert", "pulse", "house")),
    "dummies": (
        {"age": ["house: old", "house: new"]},
        [[0], [1], [2], [3], [4], [5], [6], [7, 8]],
        (*FEATURES[:7], "age"),
    ),
    "across": (
        {"size": ["house: area", "house: rooms"], "felt": ["pulse", "advert: sunny"]},
        [[0], [1, 3, 4], [2], [5, 6], [7], [8]],
        ("advert: bright", "felt", "advert: flat", "size", "house: old", "house: new"),
    ),
}


@pytest.mark.parametrize("case", GROUPINGS)
def test_a_group_is_one_player(case):
    groups, members, names = GROUPINGS[case]
    explanation = CompositeExplainer(price, PARTS, groups=groups)(INPUT)
    values, alone, last = shapley(game_of(members))
    account = explanation.contributions
    assert explanation.feature_names == names
    assert explanation.method == "exact"
    for ours, theirs in ((account.values, values), (account.alone, alone), (account.last, last)):
        np.testing.assert_allclose(ours[0], np.ravel(theirs).astype(float), rtol=1e-9, atol=1e-9)


def test_features_add_up_to_the_game_of_groups():
    explanation = CompositeExplainer(price, PARTS, hierarchy=True)(INPUT)
    coarse, fine = explanation.levels
    values, *_ = shapley(game_of([[0, 1, 2], [3, 4], [5, 6, 7, 8]]))
    np.testing.assert_allclose(coarse.contributions.values[0], np.ravel(values).astype(float), rtol=1e-9)
    shares = fine.contributions.values[0]
    sums = [shares[:3].sum(), shares[3:5].sum(), shares[5:].sum()]
    np.testing.assert_allclose(sums, coarse.contributions.values[0], rtol=1e-9)
    assert coarse.feature_names == ("advert", "pulse", "house")
    assert "By part: " in str(explanation)


def test_levels_of_the_users_groups():
    explanation = CompositeExplainer(
        price, PARTS, groups={"age": ["house: old", "house: new"]}, hierarchy=True
    )(INPUT)
    assert explanation.levels[0].feature_names == (*FEATURES[:7], "age")
    assert "By group: " in str(explanation)


def test_a_group_without_effect_is_unknown():
    """A word that is the mask looks the same hidden."""
    parts = {**PARTS, "advert": limes.TextPart(mask="flat")}
    explanation = CompositeExplainer(price, parts, groups={"size": ["advert: flat"]})(INPUT)
    place = explanation.feature_names.index("size")
    assert np.isnan(explanation.coefficients.values[0]).nonzero()[0].tolist() == [place]
    assert explanation.contributions.values[0, place] == 0.0


def test_words_that_a_text_lacks_are_in_no_group():
    groups = {"light": ["advert: bright", "advert: sunny", "advert: radiant"]}
    explanation = CompositeExplainer(price, PARTS, groups=groups)({**INPUT, "advert": "bright flat"})
    assert explanation.feature_names[:2] == ("light", "advert: flat")
    assert (
        "light" not in CompositeExplainer(price, PARTS, groups=groups)({**INPUT, "advert": "a"}).feature_names
    )


def test_drawn_backgrounds_have_groups_but_no_levels():
    parts = {**PARTS, "house": TablePart(background=HOUSES, hide="background")}
    explanation = CompositeExplainer(price, parts, groups="part", max_calls=400)(INPUT)
    assert explanation.method == "exact"
    hidden = price({"advert": [""] * 5, "pulse": np.zeros((5, 4)), "house": HOUSES}).mean()
    np.testing.assert_allclose(explanation.contributions.base_values, hidden, rtol=1e-9)
    with pytest.raises(InputError, match=r"'house' draws what is hidden.*leave its hide=\"background\" out"):
        CompositeExplainer(price, parts, hierarchy=True)(INPUT)


def test_groups_are_shown_and_stored():
    groups = {"light": ["advert: bright", "advert: sunny"], "all of the pulse": ["pulse"]}
    explanation = CompositeExplainer(price, PARTS, groups=groups)(INPUT)
    assert explanation.conditions[0][0] == 'light: "bright" present, "sunny" present'
    assert explanation.provenance["parts"] == {"house": [3, 7]}
    again = limes.Explanation.from_json(explanation.to_json())
    assert again.feature_names == explanation.feature_names
    assert "all of the pulse" in again.to_html()
    assert limes.diagnose(explanation) is not None


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ("parts", r"groups='parts' is not one of \['part'\]"),
        (["advert"], "a mapping of names to lists of parts and features"),
        ({"a": ["advert", "hous"]}, r"'hous', which is no part.*did you mean 'house'"),
        ({"a": ["house: room"]}, r"did you mean 'house: rooms'"),
        ({"a": ["advert", "pulse", "house"]}, "has all parts"),
        ({"a": ["advert"], "b": ["advert: flat"]}, "in one group at most"),
        ({"a": ["advert"], "b": ["advert"]}, "in one group at most"),
        ({"a": ["advert", "advert"]}, "twice"),
        ({"": ["advert"]}, "no name of a group"),
        ({"a": "advert"}, "pass a list of parts"),
        ({"a": []}, "has no members"),
        ({"house: rooms": ["advert"]}, "also the name of a feature"),
    ],
)
def test_unusable_groups_are_refused(groups, words):
    with pytest.raises(InputError, match=words):
        CompositeExplainer(price, PARTS, groups=groups)(INPUT)


def test_features_have_owens_value_within_their_group():
    """By definition: the mean over orders in which the features of a group are next to each other."""
    groups = [[0, 1, 2], [3, 4], [5, 6, 7, 8]]
    v = game_of([[j] for j in range(9)])
    owen = np.zeros(9)
    for before in itertools.permutations(range(3)):
        of_groups = 1 / 6
        for place, g in enumerate(before):
            shown = {j for earlier in before[:place] for j in groups[earlier]}
            orders = list(itertools.permutations(groups[g]))
            for order in orders:
                inside = set(shown)
                for j in order:
                    less = tuple(int(i in inside) for i in range(9))
                    inside.add(j)
                    more = tuple(int(i in inside) for i in range(9))
                    owen[j] += of_groups * (v[more][0] - v[less][0]) / len(orders)
    explanation = CompositeExplainer(price, PARTS, hierarchy=True)(INPUT)
    assert explanation.method == "exact"
    np.testing.assert_allclose(explanation.contributions.values[0], owen, rtol=1e-9, atol=1e-9)


def test_a_feature_that_is_not_read_has_no_part_of_its_groups_sum():
    """Effects of b1 and b2 cancel in the game of features, and not in that of the parts."""
    background = pd.DataFrame({name: [0.0, 0.0, 0.0, 1.0] for name in ("b1", "b2", "b3")})

    def model(batch):
        good = np.array(["good" in text for text in batch["a"]], dtype=float)
        return (6 * good - 4) * batch["b"]["b1"].to_numpy() * batch["b"]["b2"].to_numpy()

    parts = {"a": "text", "b": TablePart(background=background)}
    explanation = CompositeExplainer(model, parts, hierarchy=True)(
        {"a": "good", "b": {"b1": 1.0, "b2": 1.0, "b3": 1.0}}
    )
    np.testing.assert_allclose(explanation.contributions.values[0], [3.0, -0.5, -0.5, 0.0], atol=1e-12)
