"""The page in a browser, with real clicks, keys and drags."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import limes
from desks import flowers, hostile, patchy, patients, running, visits
from internals import number

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
TOKEN = "a-token_of-32-bytes"  # noqa: S105 - of these tests alone

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: make test-browser installs it"),
]


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=[patients])
def desk(request):
    return request.param()


@pytest.fixture
def page(browser, desk, request):
    """The page of a desk, once its first answers are there; complaints of the console fail the test."""
    from internals import application

    complaints = []
    with running(application(desk.desk, TOKEN)) as address:
        context = browser.new_context(viewport={"width": 1200, "height": 900}, color_scheme="light")
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{address}/{TOKEN}/")
        settled(page)
        yield page
        context.close()
    refused = getattr(request, "param", None) == "refused"
    assert refused or not complaints


def settled(page):
    """Wait until every answer is there and none is under way."""
    expect = pytest.importorskip("playwright.sync_api").expect
    expect(page.locator("#verdict")).not_to_be_empty()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def shown(page, selector):
    return page.locator(selector).inner_text()


def column(page, name):
    return page.locator("#columns > li").filter(has=page.get_by_text(name, exact=True))


def answer(desk, page, **moved):
    """Return what the page should show: the explainer's own answer to the row with values that were moved."""
    row = int(page.locator("#row").input_value())
    return desk.explainer(desk.X.iloc[[row]].assign(**moved))


def check_numbers(page, explanation, output=None):
    explanation = explanation if output is None else explanation[..., output]
    assert shown(page, "#prediction") == number(explanation.predictions[0])
    for j, name in enumerate(explanation.feature_names):
        line = column(page, name)
        text = line.locator(".coefficient").inner_text().partition(" ±")[0]
        points = 100.0 if "% chance of" in shown(page, "#headline") else 1.0
        # contributions add up as they are written: one may be rounded to the other side
        value, digits = points * explanation.contributions.values[0, j], text.partition(".")[2]
        assert float(text) == pytest.approx(value, abs=1.01 * 10 ** -len(digits))
    assert "is usual" in shown(page, "#headline")


def test_a_value_is_dragged(page, desk):
    check_numbers(page, answer(desk, page))
    verdict, rule = shown(page, "#verdict"), shown(page, "#rule-text")
    handle = column(page, "bmi").locator("input[type=range]")
    box = handle.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.2 * box["width"], middle)
    page.mouse.down()
    for share in np.linspace(0.2, 0.95, 12):
        page.mouse.move(box["x"] + share * box["width"], middle)
    page.mouse.up()
    settled(page)
    value = float(column(page, "bmi").locator("input[type=text]").input_value())
    assert 40 < value <= 42.2
    check_numbers(page, answer(desk, page, bmi=value))
    assert shown(page, "#moved") == "1 value moved"
    assert (shown(page, "#verdict"), shown(page, "#rule-text")) != (verdict, rule)
    assert "bmi > 29.27" in shown(page, "#rule-text")
    assert (
        shown(page, "#was") == f"the row as picked: {number(desk.explainer(desk.X.iloc[[0]]).predictions[0])}"
    )

    page.get_by_role("button", name="reset to the row").click()
    settled(page)
    check_numbers(page, answer(desk, page))
    assert page.locator("#reset").is_disabled()
    assert (shown(page, "#verdict"), shown(page, "#rule-text")) == (verdict, rule)


def test_a_value_is_typed_and_taken_back(page, desk):
    field = column(page, "bp").locator("input[type=text]")
    field.fill("83,5")
    field.press("Enter")
    settled(page)
    check_numbers(page, answer(desk, page, bp=83.5))
    field.fill("many")
    field.press("Enter")
    assert shown(page, "#problem") == 'bp: "many" is not a number.'
    assert field.input_value() == "83.5"
    page.get_by_role("button", name="back to 101").click()
    settled(page)
    check_numbers(page, answer(desk, page))


def test_a_slider_is_moved_by_keys(page, desk):
    slider = page.get_by_role("slider", name="bmi")
    slider.focus()
    for key in ("ArrowRight", "ArrowRight", "PageUp", "ArrowLeft"):
        page.keyboard.press(key)
    settled(page)
    value = float(column(page, "bmi").locator("input[type=text]").input_value())
    assert value == pytest.approx(32.1 + 11 * 0.2, abs=0.11)
    check_numbers(page, answer(desk, page, bmi=value))


def test_rows_are_searched_and_picked(page, desk):
    expect = pytest.importorskip("playwright.sync_api").expect
    field = page.locator("#row")
    field.fill("44")
    expect(page.locator("#rows option")).to_have_count(6)
    field.press("Enter")
    settled(page)
    assert field.input_value() == "44"
    check_numbers(page, answer(desk, page))
    page.get_by_role("button", name="next row").click()
    expect(field).to_have_value("45")
    settled(page)
    check_numbers(page, answer(desk, page))
    page.get_by_role("button", name="previous row").click()
    expect(field).to_have_value("44")
    settled(page)
    field.fill("no such row")
    field.press("Enter")
    page.wait_for_selector("#problem:not([hidden])")
    assert 'No row is called "no such row"' in shown(page, "#problem")


def test_the_largest_contributions_come_first_and_stay_in_their_places(page, desk):
    names = page.locator("#columns > li b").all_inner_texts()
    explanation = answer(desk, page)
    sizes = dict(zip(explanation.feature_names, np.abs(explanation.contributions.values[0]), strict=True))
    assert names == sorted(names, key=lambda name: -sizes[name])
    field = column(page, names[-1]).locator("input[type=text]")
    field.fill("0")
    field.press("Enter")
    settled(page)
    assert page.locator("#columns > li b").all_inner_texts() == names


@pytest.mark.parametrize("desk", [flowers], indirect=True)
def test_another_class(page, desk):
    first = answer(desk, page)
    check_numbers(page, first, 0)
    page.get_by_label("Output").select_option("P(target = 2)")
    settled(page)
    check_numbers(page, first, 2)
    assert shown(page, "#title") == "P(target = 2)"


def test_light_and_dark(page):
    def paper():
        return page.evaluate("getComputedStyle(document.querySelector('#moves')).backgroundColor")

    assert paper() == "rgb(255, 255, 255)"
    page.get_by_role("button", name="light / dark").click()
    assert paper() == "rgb(25, 30, 37)"
    page.get_by_role("button", name="light / dark").click()
    assert paper() == "rgb(255, 255, 255)"


def test_nothing_is_wider_than_the_window(page):
    for width in (360, 700, 1200, 1900):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("desk", [visits], indirect=True)
def test_dates_are_shown_and_typed_as_dates(page, desk):
    check_numbers(page, answer(desk, page))
    row = desk.X.iloc[0]
    fields = {name: column(page, name).locator("input[type=text]") for name in desk.X}
    shown_as = {name: field.input_value() for name, field in fields.items()}
    assert shown_as["opened"] == str(row["opened"].date())
    assert shown_as["month"] == str(row["month"])
    assert shown_as["wait"] == f"{row['wait'].days} days"
    assert shown_as["seen"] == row["seen"].strftime("%Y-%m-%d %H:%M+02:00")
    moved = {"opened": "2023-03-09", "wait": "31 days", "month": "2023-02"}
    for name, text in moved.items():
        fields[name].fill(text)
        fields[name].press("Enter")
    settled(page)
    assert {name: fields[name].input_value() for name in moved} == moved
    cells = {
        "opened": pd.Timestamp("2023-03-09"),
        "wait": pd.Timedelta("31D"),
        "month": pd.Period("2023-02", "M"),
    }
    check_numbers(page, answer(desk, page, **cells))
    fields["opened"].fill("spring")
    fields["opened"].press("Enter")
    assert shown(page, "#problem") == 'opened: "spring" is no step of the slider, such as 2023-03-09.'


@pytest.mark.parametrize("desk", [hostile], indirect=True)
def test_hostile_names_are_texts(page, desk):
    assert page.title() == "limes: what if"
    assert page.locator("script").count() == 1
    assert page.locator("img").count() == 0
    number_of, kind = desk.X.columns
    column(page, kind).locator("select").select_option(index=0)
    column(page, number_of).get_by_label("missing").check()
    settled(page)
    page.get_by_label("Output").select_option(index=0)
    settled(page)
    page.locator("#row").fill("17 ")
    page.locator("#row").press("Enter")
    settled(page)
    assert "onerror=" in shown(page, "#rule-text")
    assert "<script>" in shown(page, "#title") or "P(low)" in shown(page, "#title")
    assert page.title() == "limes: what if"
    assert page.locator("script").count() == 1
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("desk", [hostile], indirect=True)
def test_missing_values_and_categories(page, desk):
    number_of, kind = desk.X.columns
    row = desk.X.iloc[[0]].copy()
    column(page, number_of).get_by_label("missing").check()
    settled(page)
    row.iloc[0, 0] = np.nan
    output = page.locator("#output").evaluate("element => element.selectedIndex")
    assert shown(page, "#prediction") == number(desk.explainer(row).predictions[0, output])
    assert column(page, number_of).get_by_role("slider").is_disabled()
    column(page, kind).locator("select").select_option("b")
    settled(page)
    row.iloc[0, 1] = "b"
    assert shown(page, "#prediction") == number(desk.explainer(row).predictions[0, output])
    column(page, number_of).get_by_label("missing").uncheck()
    settled(page)
    assert column(page, number_of).get_by_role("slider").is_enabled()


@pytest.mark.parametrize("desk", [patchy], indirect=True)
@pytest.mark.parametrize("page", ["refused"], indirect=True)
def test_an_error_is_shown_as_advice_and_goes_away(page, desk):
    before = shown(page, "#prediction")
    page.get_by_role("button", name="next row").click()
    page.wait_for_selector("#problem:not([hidden])")
    assert re.search(r"column 'bmi': nan is missing.*impute it", shown(page, "#problem"))
    assert shown(page, "#prediction") == before
    page.locator("#row").fill("2")
    page.locator("#row").press("Enter")
    page.wait_for_selector("#problem", state="hidden")
    settled(page)
    check_numbers(page, answer(desk, page))


def test_the_colours_are_those_of_the_pages():
    def palettes(text):
        """Colours by name, of each rule that sets them."""
        rules = re.findall(r"\{([^{}]*--ink: [^{}]*)\}", text)
        return [dict(re.findall(r"(--[\w-]+): (#\w+)", rule)) for rule in rules]

    case = patients()
    light, dark, *_ = palettes(case.explainer(case.X.iloc[:1]).to_html())
    home = Path(limes.__file__).parent
    ours = palettes((home / "_app" / "static" / "app.css").read_text(encoding="utf-8"))
    for colours, expected in zip(ours, (light, dark, light, dark), strict=True):
        shared = colours.keys() & expected.keys()
        assert len(shared) >= 9
        assert {name: colours[name] for name in shared} == {name: expected[name] for name in shared}
