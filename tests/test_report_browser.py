"""Reports in a real browser: clicks, keys, and the effect of a hostile name."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import limes
from effort import repeats
from hostile import PAYLOADS
from internals import number, signed_column
from samples import explanation

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: make test-browser installs it"
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: make test-browser installs it"),
]
DRAWN = "performance.getEntriesByName('report-drawn').length"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield started
        started.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a report; whatever else it does than draw itself is an error at the end."""
    events, contexts = [], []

    def visit(result, *, width=1300, theme="light", **options):
        path = tmp_path / f"report{len(contexts)}.html"
        result.to_report(path, progress=False, **options)
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        contexts.append(context)
        page = context.new_page()
        page.on(
            "request",
            lambda r: (
                None if r.url == path.as_uri() or r.url.startswith("data:image/") else events.append(r.url)
            ),
        )
        page.on("dialog", lambda dialog: (events.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: events.append(str(error)))
        page.on("console", lambda message: events.append(message.text))
        page.goto(path.as_uri())
        page.wait_for_function(DRAWN)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not events


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = RandomForestRegressor(20, max_depth=6, random_state=0).fit(X, y)
    rows = X.iloc[:150].rename(index="patient-{:03d}".format)
    return model, X, rows, limes.TabularExplainer(model, X)(rows)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    model = RandomForestClassifier(15, max_depth=4, random_state=0).fit(X, names[y])
    return limes.TabularExplainer(model, X)(X.iloc[::5])


def listed(page):
    return page.locator("#rows tbody tr td:first-child").all_inner_texts()


def heading(page):
    return page.locator("#row h2").first.inner_text()


def open_lime(page):
    """Open LIME's view, which is folded where contributions are."""
    folded = page.locator("details.lime")
    if folded.count() and not folded.evaluate("details => details.open"):
        folded.locator("summary").first.click()
        page.wait_for_selector("details.lime section.coefficients")


def coefficients(page):
    """By their conditions, as the machine-readable numbers of the table."""
    open_lime(page)
    lines = page.locator("section.coefficients tbody tr").all()
    return {
        line.locator("th").inner_text(): float(line.locator("data").first.get_attribute("value"))
        for line in lines
    }


def test_search_finds_a_row(opened, diabetes):
    page = opened(diabetes[3])
    assert len(listed(page)) == 100
    page.get_by_label("Search").fill("PATIENT-14")
    assert listed(page) == [f"patient-14{i}" for i in range(10)]
    assert page.locator("#counter").inner_text() == "10 of 150 rows"
    page.locator("tr", has_text="patient-143").click()
    assert heading(page).startswith("patient-143")
    page.get_by_label("Search").fill("no such row")
    assert listed(page) == []


@pytest.mark.parametrize(("name", "numbers"), [("prediction", "predictions"), ("R²", "fidelity")])
def test_sorting_by_numbers(opened, diabetes, name, numbers):
    model, X, rows, result = diabetes
    if name == "R²":  # a column of reports that have no contributions
        result = limes.TabularExplainer(model, X, contributions=False)(rows)
    page = opened(result)
    button = page.get_by_role("columnheader").get_by_role("button", name=name)
    for sign, order in ((-1, "descending"), (1, "ascending")):
        button.click()
        sorted_rows = np.argsort(sign * getattr(result, numbers).astype(np.float32), kind="stable")[:100]
        assert listed(page) == [result.ids[i] for i in sorted_rows]
        assert page.get_by_role("columnheader", name=name).get_attribute("aria-sort") == order
        assert page.locator("#rows [aria-sort=ascending], #rows [aria-sort=descending]").count() == 1
        assert button.evaluate("button => button === document.activeElement")


def test_filters(opened, diabetes):
    model, X, rows, _ = diabetes
    result = limes.TabularExplainer(model, X, contributions=False)(rows)
    page = opened(result)
    page.locator("#filter-low").fill("180")
    page.locator("#filter-high").fill("260")
    page.locator("#filter-r2Low").fill("0.4")
    page.locator("#filter-r2High").fill("0.6")
    chosen = (
        (result.predictions >= 180)
        & (result.predictions <= 260)
        & (result.fidelity >= 0.4)
        & (result.fidelity <= 0.6)
    )
    assert 0 < chosen.sum() < 100
    assert listed(page) == [result.ids[i] for i in np.flatnonzero(chosen)]


def test_rows_with_warnings(opened):
    warned = [7, 101, 119]
    result = explanation(120, row_warnings=[["odd"] if i in warned else [] for i in range(120)])
    page = opened(result)
    page.get_by_label("Rows with warnings only").check()
    assert listed(page) == [f"row {i}" for i in warned]
    page.locator("tr", has_text="row 101").click()
    assert page.locator("#row p.warning").all_inner_texts() == ["odd"]


def test_the_keyboard_opens_rows_and_turns_pages(opened, diabetes):
    page = opened(diabetes[3])
    order = []
    for _ in range(20):
        page.keyboard.press("Tab")
        order.append(page.evaluate("(e => e.id || e.dataset.row || e.textContent)(document.activeElement)"))
    assert order.index("compare") < order.index("filter-text") < order.index("row") < order.index("0")
    page.locator("tr[data-row='0']").focus()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert heading(page).startswith("patient-001")
    assert page.locator("tr[aria-selected=true]").get_attribute("data-row") == "1"
    assert page.evaluate("document.activeElement.dataset.row") == "1"
    assert "patient-001" in page.locator("[role=status]").inner_text()
    page.keyboard.press("End")
    assert heading(page).startswith("patient-149")
    assert page.locator(".pager").inner_text().split("\n")[1] == "page 2 of 2"
    page.keyboard.press("Home")
    assert heading(page).startswith("patient-000")
    page.get_by_role("button", name="Next").click()
    assert listed(page)[0] == "patient-100"


def test_the_slider_moves_bars_to_the_coefficients_at_that_bandwidth(opened, diabetes):
    model, X, rows, result = diabetes
    page = opened(result)
    page.locator("tr[data-row='3']").click()
    before = coefficients(page)
    np.testing.assert_allclose(
        [before[c] for c in result.conditions[3]], result.coefficients.values[3], rtol=1e-6
    )
    slider = page.get_by_label("Bandwidth")
    for stop in (0, 7, 12, 18, 24):
        slider.evaluate(
            "(slider, stop) => { slider.value = stop; slider.dispatchEvent(new Event('input')); }", stop
        )
        nu = result.provenance["bandwidth"] * np.geomspace(0.1, 10, 25)[stop]
        assert f"ν = {nu:.3g}" in slider.get_attribute("aria-valuetext")
        exact = limes.TabularExplainer(model, X, bandwidth=float(nu))(rows[3:4]).coefficients.values[0]
        coef = coefficients(page)
        largest = np.abs(exact).max()
        np.testing.assert_allclose(
            [coef[c] for c in result.conditions[3]], exact, atol=5e-4 * largest, rtol=0
        )
        widths = [
            float(line.locator("rect").get_attribute("width") if line.locator(".bar rect").count() else 0)
            for line in page.locator("section.coefficients tbody tr td.picture").all()
        ]
        drawn = [abs(value) for value in coef.values()]
        np.testing.assert_allclose(np.array(widths) / max(widths), np.array(drawn) / max(drawn), atol=1e-3)
    page.get_by_role("button", name="Reset").click()
    assert coefficients(page) == before
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert "times that of the explanation" in page.locator(".bandwidth .at").inner_text()


def test_the_output_can_be_switched(opened, iris):
    page = opened(iris)
    for output, name in enumerate(iris.output_names):
        page.get_by_label("Output").select_option(label=f"P({name})")
        coef = coefficients(page)
        np.testing.assert_allclose(
            [coef[c] for c in iris.conditions[0]], iris.coefficients.values[0, :, output], rtol=1e-6
        )
        assert f"P({name})" in heading(page)
        first = float(page.locator("tr[data-row='0'] td.number").first.inner_text())
        assert first == pytest.approx(iris.predictions[0, output], abs=5e-4)
    page.get_by_label("Output").select_option("-1")
    page.locator("tr[data-row='29']").click()
    assert "P(virginica)" in heading(page)


def test_dark_and_light(opened, diabetes):
    def ground(page):
        return np.array(
            [
                int(c)
                for c in re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))
            ]
        )

    one = diabetes[3][:2]
    page = opened(one)
    assert ground(page).min() > 200
    page.get_by_role("button", name="Dark").click()
    assert ground(page).max() < 60
    page.get_by_role("button", name="Dark").click()
    assert ground(page).min() > 200
    dark = opened(one, theme="dark")
    assert ground(dark).max() < 60
    assert dark.get_by_role("button", name="Dark").get_attribute("aria-pressed") == "true"


def test_two_rows_side_by_side(opened, diabetes):
    result, page = diabetes[3], opened(diabetes[3])
    page.get_by_role("button", name="Compare with another row").click()
    assert "patient-000 stays" in page.locator("#row .note").inner_text()
    page.locator("tr[data-row='5']").click()
    open_lime(page)
    for section, values in (
        ("account", result.contributions.values),
        ("coefficients", result.coefficients.values),
    ):
        lines = page.locator(f"section.{section} tbody tr").all()
        assert len(lines) == len(result.feature_names)
        for line in lines:
            j = result.feature_names.index(line.locator("th").inner_text())
            both = [float(data.get_attribute("value")) for data in line.locator("data").all()]
            np.testing.assert_allclose(both, values[[0, 5], j], rtol=1e-6)
    facts = page.locator("table.compared tbody tr").first.locator("td").all_inner_texts()
    np.testing.assert_allclose([float(f) for f in facts[:2]], result.predictions[[0, 5]], rtol=1e-3)
    page.get_by_role("button", name="End comparison").click()
    assert heading(page).startswith("patient-005")


def test_two_models_side_by_side(opened, diabetes):
    model, X, rows, result = diabetes
    second = RandomForestRegressor(5, max_depth=2, random_state=1).fit(X, model.predict(X))
    other = limes.TabularExplainer(second, X)(rows)
    page = opened(result, other=other, models=("large", "small"))
    page.get_by_role("columnheader").get_by_role("button", name="change").click()
    change = (other.predictions.astype(np.float32) - result.predictions.astype(np.float32)).astype(float)
    assert listed(page)[0] == result.ids[int(np.argmax(change))]
    page.get_by_label("Model").select_option("both")
    page.locator("tr").nth(1).click()
    row = int(page.locator("tr[aria-selected=true]").get_attribute("data-row"))
    open_lime(page)
    for line in page.locator("section.coefficients tbody tr").all():
        j = result.feature_names.index(line.locator("th").inner_text())
        both = [float(data.get_attribute("value")) for data in line.locator("data").all()]
        np.testing.assert_allclose(
            both,
            [result.coefficients.values[row, j], other.coefficients.values[row, j]],
            rtol=1e-6,
            atol=1e-9,
        )
    page.get_by_label("Model").select_option("1")
    coef = coefficients(page)
    np.testing.assert_allclose(
        [coef[c] for c in other.conditions[row]], other.coefficients.values[row], rtol=1e-6, atol=1e-9
    )


def test_all_rows_at_once(opened, diabetes):
    result, page = diabetes[3], opened(diabetes[3])
    page.locator("#filter-low").fill("200")
    page.get_by_role("button", name="All rows").click()
    chosen = result.contributions.values[result.predictions >= 200]
    lines = page.locator("table.means tbody tr").all()
    order = np.argsort(-np.abs(chosen).mean(axis=0))
    assert [line.locator("th").inner_text() for line in lines] == [result.feature_names[j] for j in order]
    assert float(lines[0].locator("td.number").first.inner_text()) == pytest.approx(
        np.abs(chosen).mean(0).max(), rel=1e-3
    )
    assert lines[0].locator("td.number").last.inner_text() == f"{np.mean(chosen[:, order[0]] > 0):.0%}"


@pytest.mark.parametrize("sampled", [False, True])
def test_the_account_leads_to_the_prediction(opened, diabetes, sampled):
    model, X, rows, result = diabetes
    if sampled:
        result = limes.TabularExplainer(lambda x: model.predict(x), X, max_calls=1024)(rows[:2])
    page, account = opened(result), result.contributions
    lines = page.locator("section.account tbody tr").all()
    for line in lines:
        j = result.feature_names.index(line.locator("th").inner_text().split(" = ")[0])
        number = float(line.locator("data").get_attribute("value"))
        assert number == pytest.approx(account.values[0, j], rel=1e-6)
        assert ("±" in line.inner_text()) is sampled
    assert len(lines) == 10
    written = [float(line.locator("data").inner_text()) for line in lines]
    headline = page.locator("#row .headline").inner_text().replace(";", "").split()
    prediction, base = float(headline[1]), float(headline[2])
    assert base + sum(written) == pytest.approx(prediction, abs=1e-9)
    assert prediction == pytest.approx(result.predictions[0], rel=1e-3)
    assert page.locator("section.waterfall").count() == 0


def test_the_waterfall_leads_to_the_prediction(opened, diabetes):
    model, X, rows, _ = diabetes
    result = limes.TabularExplainer(model, X, contributions=False)(rows)
    page = opened(result)
    lines = page.locator("section.waterfall tbody tr").all()
    steps = {line.locator("th").inner_text(): float(line.locator("td.number").inner_text()) for line in lines}
    assert steps["base (intercept)"] == pytest.approx(result.coefficients.intercepts[0], rel=1e-3)
    assert steps["prediction"] == pytest.approx(result.predictions[0], rel=1e-3)
    between = [
        value for name, value in steps.items() if name not in ("base (intercept)", "surrogate", "prediction")
    ]
    assert steps["base (intercept)"] + sum(between) == pytest.approx(steps["prediction"], rel=1e-3)


@pytest.mark.parametrize("scale", [1e-300, 3e-5, 0.0123, 1.0, 4321.0, 7e8, 1e300])
def test_numbers_are_written_as_everywhere_else(opened, scale):
    values = scale * np.array([[9.9996, -3.01, 1.2471, 0.5123, -0.1, 0.03, -0.001, 1e-5, -1e-9, 0.0]])
    result = explanation(1, values=values, intercepts=[scale], predictions=[12.3 * scale], fidelity=[0.98765])
    page = opened(result)
    order = np.argsort(-np.abs(values[0]), kind="stable")
    written = page.locator("section.coefficients td.number").all_inner_texts()
    assert [text.strip() for text in written] == signed_column(values[0][order])
    facts = dict(
        zip(
            page.locator(".facts dt").all_inner_texts(),
            page.locator(".facts dd").all_inner_texts(),
            strict=True,
        )
    )
    assert facts["prediction"] == number(result.predictions[0])
    assert facts["base (intercept)"] == number(result.coefficients.intercepts[0])
    assert facts["R²"] == number(0.98765, 3)


def test_findings_and_rules(opened, diabetes):
    model, X, rows, result = diabetes
    diagnosis = limes.diagnose(result[:3], progress=False)
    page = opened(result[:3], diagnosis=diagnosis)
    text = page.locator("section.findings").inner_text()
    assert diagnosis.rows[0].verdict in text
    assert all(finding.sentence in text for finding in diagnosis.rows[0].findings[:1])
    sparse = limes.SparseExplainer(model, k=3, literals=limes.Literals.fit(X))(rows[:2])
    ruled = opened(sparse)
    assert " ".join(sparse.rule(0).split()) in ruled.locator("section.rule").inner_text()


@pytest.mark.parametrize("width", [400, 700, 1300])
def test_nothing_is_wider_than_the_screen(opened, iris, width):
    page = opened(iris, width=width)
    for press in ("row", "pair", "overview"):
        if press == "pair":
            page.get_by_role("button", name="Compare with another row").click()
            page.locator("tr[data-row='5']").click()
        if press == "overview":
            page.get_by_role("button", name="All rows").click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_print_leaves_the_controls_out(opened, diabetes):
    page = opened(diabetes[3], theme="dark")
    page.emulate_media(media="print")
    assert not page.locator("#rows").is_visible()
    assert not page.locator("#controls").is_visible()
    assert page.locator("section.account").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf().startswith(b"%PDF")


def test_landmarks_and_names(opened, diabetes):
    page = opened(diabetes[3])
    for role in ("banner", "main", "navigation", "toolbar", "search", "grid", "status"):
        assert page.get_by_role(role).count() == 1
    unnamed = page.evaluate(
        "[...document.querySelectorAll('input, select, button')]"
        ".filter(e => !(e.labels?.length || e.textContent || e.ariaLabel)).length"
    )
    assert unnamed == 0
    assert page.locator("table").count() == page.locator("table:has(caption), table[aria-label]").count()


def test_hostile_names_stay_texts(opened):
    n, d = len(PAYLOADS), 10
    result = explanation(
        n,
        3,
        data=[[PAYLOADS[(i + j) % n] for j in range(d)] for i in range(n)],
        feature_names=PAYLOADS[:d],
        conditions=[[PAYLOADS[(2 * i + j) % n] for j in range(d)] for i in range(n)],
        output_names=PAYLOADS[:3],
        ids=PAYLOADS,
        row_warnings=[[text] for text in PAYLOADS],
        provenance={"bandwidth": 1.0, PAYLOADS[0]: PAYLOADS[1]},
    )
    plain = explanation(n, 3, row_warnings=[["w"]] * n, provenance={"bandwidth": 1.0, "a": "b"})
    counts = []
    for e in (plain, result):
        page = opened(e, other=e, models=(PAYLOADS[0], PAYLOADS[1]), title=PAYLOADS[2])
        tags = []
        for row in range(0, n, repeats(1, 6)):
            page.locator(f"tr[data-row='{row}']").click()
            tags.append(
                page.evaluate(
                    "[...document.querySelectorAll('*')].map(e => e.localName)"
                    ".filter(n => !['a', 'b', 'p', 'i', 'line', 'rect', 'svg'].includes(n)).length"
                )
            )
            names = page.evaluate("[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())")
            assert not [name for name in names if name.startswith("on")]
        page.get_by_label("Model").select_option("both")
        page.get_by_role("button", name="Compare with another row").click()
        page.locator("tr[data-row='1']").click()
        page.get_by_role("button", name="All rows").click()
        counts.append(tags)
        assert page.locator("script").count() == 2
        assert page.locator("iframe, img, object, embed, link, form[action]").count() == 0
    assert counts[0] == counts[1]
    assert page.title() == " ".join(PAYLOADS[2].split())


def test_hostile_texts_stay_texts(opened):
    model = lambda texts: np.array([float(len(text)) for text in texts])  # noqa: E731 - black boxes are callables
    text = "\n".join(PAYLOADS[:8])
    result = limes.TextExplainer(model, max_calls=128)(text)
    page = opened(result)
    assert page.locator("p.text").inner_text() == text
    assert page.locator("img, iframe").count() == 0


def test_texts_and_images_have_their_colours(opened):
    text = limes.TextExplainer(lambda texts: np.array([float(t.count("good")) for t in texts]))("a good day")
    page = opened(text)
    assert page.locator("mark.raises").all_inner_texts() == ["good"]
    image = np.full((16, 16, 3), 50, np.uint8)  # black would look the same where it is off
    image[:8] = 200
    labels = np.repeat([0, 1], 8)[:, None].repeat(16, 1)
    of_image = limes.ImageExplainer(
        lambda xs: np.stack([np.asarray(x, float)[:8].mean() for x in xs]), segments=labels, fill=0
    )(image)
    page = opened(of_image)
    assert page.locator("img").evaluate_all("images => images.every(i => i.complete && i.naturalWidth > 0)")
    assert page.locator("img").count() == 2
    assert page.locator(".tinted svg path").count() == 2
    title = page.locator(".tinted svg path.raises title").first.text_content()
    assert title.startswith("superpixel 0: +")


def test_every_part_is_drawn_and_series_have_axes(opened):
    def model(parts):
        pairs = zip(parts["question"], parts["answer"], parts["pulse"], strict=True)
        return np.array([("good" in q) - 2.0 * ("good" in a) + x[20:].mean() / 20 for q, a, x in pairs])

    parts = {"question": "text", "answer": "text", "pulse": limes.SeriesPart(count=2, fill=0.0)}
    pulse = pd.Series(np.arange(40.0), index=pd.date_range("2024-03-01", periods=40, name="day"))
    result = limes.CompositeExplainer(model, parts)({"question": "good", "answer": "no good", "pulse": pulse})
    page = opened(result)
    assert page.locator("h4.part").all_inner_texts() == ["question", "answer", "pulse"]
    assert page.locator("mark.raises").all_inner_texts() == ["good"]
    assert page.locator("mark.lowers").all_inner_texts() == ["good"]
    assert page.locator(".lane .across span").all_inner_texts()[:2] == ["2024-03-01", "2024-03-11"]
    assert page.locator(".lane .up span").all_inner_texts() == ["0", "10", "20", "30"]
    assert page.locator(".lane p").inner_text() == "day"
    # names of values stand beside the picture, at its height
    picture, highest = (page.locator(f".lane {part}").last.bounding_box() for part in ("svg", ".up span"))
    assert highest["x"] + highest["width"] <= picture["x"]
    middle = highest["y"] + highest["height"] / 2
    expected = picture["y"] + picture["height"] * (0.94 - 0.88 * 30 / 39)
    assert abs(middle - expected) < 2.0


def test_values_of_a_page_stay_on_one_line_on_a_narrow_screen(browser, tmp_path):
    path = tmp_path / "page.html"
    explanation(1, sampled=True, data=[["256 px"] * 10]).to_html(path)
    context = browser.new_context(viewport={"width": 500, "height": 900})
    page = context.new_page()
    page.goto(path.as_uri())
    heights = page.locator("table.lx-lines td:nth-child(2)").evaluate_all(
        "cells => cells.map(c => c.clientHeight)"
    )
    context.close()
    assert len(heights) == 10
    assert max(heights) < 30


@pytest.mark.parametrize("sampled", [False, True])
def test_numbers_of_a_card_fit_below_their_headings_on_a_narrow_screen(browser, sampled, diabetes):
    model, X, rows, _ = diabetes
    shown = limes.TabularExplainer(model.predict if sampled else model, X, max_calls=200, rng=0)(
        rows.iloc[:1], progress=False
    )
    context = browser.new_context(viewport={"width": 500, "height": 900})
    page = context.new_page()
    # sites give cells of tables a width
    page.set_content(f"<style>td {{ min-width: 7rem }}</style>{shown._repr_html_()}")
    card = page.locator(".limes-explanation").bounding_box()
    heading = page.locator("table.lx-account th:nth-child(3)").bounding_box()
    numbers = [cell.bounding_box() for cell in page.locator("table.lx-account td:nth-child(3)").all()]
    context.close()
    assert len(numbers) == 10
    for number_box in numbers:
        assert number_box["x"] + number_box["width"] <= card["x"] + card["width"] - 10
        assert number_box["x"] == heading["x"]
        assert number_box["y"] > heading["y"]


def test_a_browser_that_cannot_inflate_says_so(browser, tmp_path):
    path = tmp_path / "report.html"
    explanation(2).to_report(path)
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto(path.as_uri())
    page.wait_for_selector("#row .warning")
    assert "needs a browser of 2023 or later" in page.locator("#row").inner_text()
    context.close()
