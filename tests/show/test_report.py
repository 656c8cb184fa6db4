"""The contents of a report: numbers within the stated precision, texts that cannot become markup, sizes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression

import limes
from effort import repeats
from hostile import PAYLOADS
from limes.exceptions import InputError
from samples import explanation

STEP = 1 / 4096


class Page(HTMLParser):
    """The tags of a page, and the text of each script and style, as a browser cuts it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.tags, self.blocks, self._open = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open = tag in ("script", "style")
        if self._open:
            self.blocks.append((tag, dict(attrs), ""))

    def handle_data(self, data):
        if self._open:
            tag, attrs, text = self.blocks[-1]
            self.blocks[-1] = (tag, attrs, text + data)

    def handle_endtag(self, tag):
        self._open = False

    def block(self, **attributes):
        (text,) = [text for _, attrs, text in self.blocks if attributes.items() <= attrs.items()]
        return text


class Data:
    """The numbers of a page, read by what the docstring of ``packing.py`` states."""

    def __init__(self, text: str) -> None:
        page = Page(text)
        self.content = json.loads(page.block(id="content"))
        self.bytes = zlib.decompress(base64.b64decode(page.block(id="numbers")))

    def array(self, reference):
        kind = np.dtype(f"<{reference['type']}")
        part = self.bytes[reference["at"] : reference["at"] + reference["size"] * kind.itemsize]
        planes = np.frombuffer(part, np.uint8).reshape(kind.itemsize, reference["size"])
        return np.ascontiguousarray(planes.T).view(kind).ravel()

    def of(self, name, *shape, at=0):
        return self.array(self.content["explanations"][at][name]).reshape(shape)

    def curves(self, n, d, k):
        curves = self.content["explanations"][0]["curves"]
        basis = self.array(curves["basis"]).reshape(curves["rank"], -1)
        weights = self.array(curves["weights"]).reshape(curves["rank"], k, d, n)
        scales = self.array(curves["scales"]).reshape(k, 1, n)
        values = curves["step"] * np.einsum("rkdn,rg->gkdn", weights, basis) * scales
        return self.array(curves["bandwidths"]), values


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(15, max_depth=4, random_state=0).fit(X, y)
    return model, X


@pytest.fixture(scope="module")
def of_iris(iris):
    model, X = iris
    return limes.TabularExplainer(model, X)(X.iloc[::6])


def report(of, **options):
    return of.to_report(progress=False, **options)


@pytest.mark.parametrize("e", [explanation(7), explanation(5, 3, sampled=True), explanation(1)])
def test_numbers_have_seven_digits(e):
    data, n, d = Data(report(e)), *e.coefficients.values.shape[:2]
    k = e.coefficients.values.shape[2] if e.coefficients.values.ndim == 3 else 1
    values = e.coefficients.values.reshape(n, d, k).transpose(2, 1, 0)
    np.testing.assert_allclose(data.of("values", k, d, n), values, rtol=6e-8)
    for name, array in (
        ("predictions", e.predictions),
        ("surrogates", e.coefficients.surrogate_predictions),
        ("intercepts", e.coefficients.intercepts),
        ("fidelity", e.fidelity),
    ):
        np.testing.assert_allclose(data.of(name, k, n), array.reshape(n, k).T, rtol=6e-8)
    if e.method == "sampled":
        np.testing.assert_allclose(
            data.of("errors", k, d, n),
            e.coefficients.standard_errors.reshape(n, d, k).transpose(2, 1, 0),
            rtol=6e-8,
        )
    else:
        assert data.content["explanations"][0]["errors"] is None


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_numbers_that_float32_cannot_hold_are_float64(factor):
    values = explanation(2).coefficients.values * factor
    data = Data(report(explanation(2, values=values)))
    np.testing.assert_array_equal(data.of("values", 10, 2), values.T)


def test_conditions_values_names_and_warnings_come_back():
    cells = np.array(
        [[1, "a", None], [2**40, "b", 0.5], [2**70, True, -3.25], [-7, "1", float("nan")]], object
    )
    e = explanation(
        4,
        d=3,
        data=cells,
        ids=["x", "y", 17, "z"],
        row_warnings=[["one", "two"], [], ["two"], []],
    )
    data = Data(report(e))
    content = data.content["explanations"][0]

    def coded(column):
        return [column["entries"][code] for code in data.array(column["codes"])]

    assert [coded(column) for column in content["conditions"]] == [
        list(c) for c in zip(*e.conditions, strict=True)
    ]
    assert coded(content["data"][0]) == ["1", str(2**40), str(2**70), "-7"]
    assert coded(content["data"][1]) == ["a", "b", "True", "1"]
    assert coded(content["data"][2]) == ["missing", "0.5", "-3.25", "missing"]
    assert content["ids"]["texts"] == ["x", "y", "row 17", "z"]
    assert data.array(content["warnings"]["counts"]).tolist() == [2, 0, 1, 0]
    assert coded(content["warnings"]) == ["one", "two", "two"]


def test_columns_of_many_numbers_are_numbers():
    n = 400
    cells = np.empty((n, 2), object)
    cells[:, 0] = np.linspace(-1, 1, n).tolist()
    cells[:, 1] = (2**24 + np.arange(n)).tolist()
    data = Data(report(explanation(n, d=2, data=cells)))
    first, second = data.content["explanations"][0]["data"]
    np.testing.assert_allclose(data.array(first["numbers"]), cells[:, 0].astype(float), rtol=6e-8)
    np.testing.assert_array_equal(data.array(second["numbers"]), cells[:, 1].astype(float))
    # float32 where its digits do, which is half as long, and float64 where whole numbers need it
    assert (first["numbers"]["type"], second["numbers"]["type"]) == ("f4", "f8")


def test_effects_are_within_half_a_step(of_iris):
    data, n = Data(report(of_iris)), len(of_iris)
    effects = data.content["explanations"][0]["effects"]
    total = sum(effects["counts"])
    scales = data.array(effects["scales"]).reshape(3, 1, n)
    values = data.array(effects["values"]).reshape(3, total, n) * STEP * scales
    current = data.array(effects["current"]).reshape(4, n)
    for position, effect in enumerate(of_iris.effects):
        row, (k, j) = position // 12, divmod(position % 12, 4)
        start = sum(effects["counts"][:j])
        cells = slice(start, start + effects["counts"][j])
        room = 0.51 * STEP * scales[k, 0, row]
        np.testing.assert_allclose(values[k, cells, row], effect.values, atol=room, rtol=0)
        assert current[j, row] == effect.current
        texts = effects["cells"][j]
        assert tuple(texts["entries"][data.array(texts["codes"])[row]]) == effect.cells


@pytest.mark.parametrize("bins", ["quartile", None])
def test_the_slider_has_what_limes_computes_at_each_bandwidth(iris, bins):
    model, X = iris
    rows = X.iloc[:: repeats(30, 75)]
    e = limes.TabularExplainer(model, X, bins=bins)(rows)
    bandwidths, values = Data(report(e)).curves(len(rows), 4, 3)
    units = np.ones(4) if bins else np.array([e.provenance["slopes"][name]["deviation"] for name in X])
    assert len(bandwidths) == 25
    whole = np.abs(values).max(axis=(0, 2))[:, None]
    for g in repeats((0, 5, 12, 18, 24), (0, 5, 24)):
        at_bandwidth = limes.TabularExplainer(model, X, bins=bins, bandwidth=bandwidths[g])(rows)
        bars = at_bandwidth.coefficients.values.transpose(2, 1, 0) * units[:, None]
        largest = np.abs(bars).max(axis=1, keepdims=True)
        room = 5.01e-4 * np.where(largest > 1e-3 * whole, largest, whole)
        assert (np.abs(values[g] - bars) <= room).all()


def test_the_second_of_two_classes_is_shown(iris):
    X, y = iris[1], load_iris().target
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y == 1)
    content = Data(report(limes.TabularExplainer(model, X)(X.iloc[:3]))).content["explanations"][0]
    assert content["outputs"] == ["P(target = True)"]


class TestWithoutASlider:
    def missing(self, e, **options):
        return Data(report(e, **options)).content["explanations"][0]["curves"]["missing"]

    def test_a_sampled_model(self, iris):
        X = iris[1]
        e = limes.TabularExplainer(lambda rows: rows.iloc[:, 0].to_numpy(), X, max_calls=64, control="none")(
            X.iloc[:2]
        )
        assert "coefficients are sampled" in self.missing(e)
        with pytest.raises(InputError, match=r"bandwidths=True: .* coefficients are sampled"):
            report(e, bandwidths=True)

    def test_a_file(self, of_iris):
        assert "comes from a file" in self.missing(limes.Explanation.from_json(of_iris[:2].to_json()))

    def test_a_ridge(self, iris):
        model, X = iris
        assert "ridge" in self.missing(limes.TabularExplainer(model, X, ridge=1.0)(X.iloc[:2]))

    def test_some_of_the_features(self, of_iris):
        assert "all its features" in self.missing(of_iris[:2, :2])

    def test_curves_are_left_out_on_request(self, of_iris):
        assert "without other bandwidths" in self.missing(of_iris[:2], bandwidths=False)

    def test_many_rows_behind_a_link(self):
        X, y = load_iris(return_X_y=True, as_frame=True)
        model = LogisticRegression(max_iter=1000).fit(X, y > 0)
        e = limes.TabularExplainer(model, X, output="probability")(X.iloc[:51])
        content = Data(report(e)).content["explanations"][0]
        assert "without other bandwidths" in content["curves"]["missing"]
        assert "without the whole effects" in content["effects"]["missing"]
        assert "rank" in Data(report(e[:2])).content["explanations"][0]["curves"]


def test_a_diagnosis_comes_along(of_iris):
    diagnosis = limes.diagnose(of_iris[:3], progress=False)
    data = Data(report(of_iris[:3], diagnosis=diagnosis))
    findings = data.content["explanations"][0]["findings"]
    counts = data.array(findings["found"]["counts"])
    kinds = [[*dict.fromkeys(finding.kind for finding in row.findings)] for row in diagnosis.rows]
    assert counts.tolist() == [len(names) for names in kinds]
    result = [findings["found"]["entries"][code] for code in data.array(findings["found"]["codes"])]
    assert [kind for _, kind, _, _ in result] == [kind for names in kinds for kind in names]
    assert report(of_iris[:3], diagnosis=True) == report(of_iris[:3], diagnosis=diagnosis)


class TestRefusals:
    def test_no_rows(self, of_iris):
        with pytest.raises(InputError, match="has no rows"):
            report(of_iris[:0])

    def test_other_rows(self, of_iris):
        with pytest.raises(
            InputError, match=r"other explains other rows \(2, the first is 0; here 2, the first is 6\)"
        ):
            report(of_iris[1:3], other=of_iris[:2])

    def test_other_outputs(self, of_iris):
        with pytest.raises(InputError, match="compare explanations of the same outputs"):
            report(of_iris, other=of_iris[..., [0, 1]])

    def test_no_explanation(self, of_iris):
        with pytest.raises(InputError, match="other is of type dict"):
            report(of_iris, other={})

    @pytest.mark.parametrize("models", ["ab", ("a",), ("a", "a"), (1, 2), None])
    def test_names_of_models(self, of_iris, models):
        with pytest.raises(InputError, match="pass two different names"):
            report(of_iris, models=models)

    @pytest.mark.parametrize("diagnosis", [1, "yes"])
    def test_a_diagnosis(self, of_iris, diagnosis):
        with pytest.raises(InputError, match=r"pass True, or what limes.diagnose"):
            report(of_iris, diagnosis=diagnosis)

    def test_a_diagnosis_of_other_rows(self, of_iris):
        with pytest.raises(InputError, match="diagnosis has 1 rows, the explanation 2"):
            report(of_iris[:2], diagnosis=limes.diagnose(of_iris[:1], progress=False))

    def test_a_folder_that_is_missing(self, of_iris, tmp_path):
        with pytest.raises(InputError, match="does not exist"):
            report(of_iris[:1], path=tmp_path / "nowhere" / "report.html")


def hostile():
    chosen, n, d = PAYLOADS, len(PAYLOADS), 10
    return explanation(
        n,
        2,
        data=[[chosen[(i + j) % n] for j in range(d)] for i in range(n)],
        feature_names=[chosen[j % n] for j in range(d)],
        conditions=[[chosen[(2 * i + j) % n] for j in range(d)] for i in range(n)],
        output_names=[chosen[0], chosen[1 % n] + "!"],
        ids=chosen,
        row_warnings=[[text] for text in chosen],
        reason=chosen[0],
        provenance={"bandwidth": 1.0, chosen[0]: chosen[1 % n], "meaning": chosen[0]},
    )


def test_names_are_never_markup():
    e = hostile()
    text = report(e, other=e, models=(PAYLOADS[0], PAYLOADS[1]), title=PAYLOADS[0])
    harmless = Page(report(explanation(3, 2)))
    page = Page(text)
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in harmless.tags]
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    block = page.block(id="content")
    assert not re.search("[<>&\u2028\u2029]", block)
    assert not [c for c in block if not c.isprintable()]
    content = json.loads(block)["explanations"][0]
    shown = [" ".join("".join(c if c.isprintable() else " " for c in text).split()) for text in PAYLOADS]
    assert content["ids"]["texts"] == shown


def test_the_page_allows_its_own_script_and_style_alone():
    page = Page(report(explanation(3)))
    (policy,) = [a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for rule, tag in (("script-src", "script"), ("style-src", "style")):
        (text,) = [text for name, attrs, text in page.blocks if name == tag and not attrs]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    script = next(text for name, attrs, text in page.blocks if name == "script" and not attrs)
    assert not re.search(
        r"\beval\b|new Function|(inner|outer)HTML|insertAdjacent|document\.write|\bfetch\(|XMLHttpRequest",
        script,
    )
    assert not any(name == "style" or name.startswith("on") for _, attrs in page.tags for name in attrs)


def test_the_same_page_each_time_and_in_the_file(of_iris, tmp_path):
    path = tmp_path / "report.html"
    text = report(of_iris, path=path)
    assert path.read_text(encoding="utf-8") == text == report(of_iris)


@pytest.mark.parametrize(("contributions", "most"), [(False, 5_000_000), ("auto", 6_700_000)])
def test_ten_thousand_rows_of_twenty_columns_stay_below_five_megabytes_beside_their_contributions(
    contributions, most
):
    """With effects and the slider; of a thousand rows, ten times what they add to a page."""
    n = repeats(10_000, 1_000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 20))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + X[:, 3] * (X[:, 4] > 0) + 0.1 * rng.normal(size=10_000)
    model = RandomForestRegressor(8, max_depth=6, random_state=0).fit(X[:2000], y[:2000])
    e = limes.TabularExplainer(model, X, contributions=contributions)(X[:n], progress=False)
    text = report(e)
    content = Data(text).content["explanations"][0]
    assert "rank" in content["curves"]
    assert "counts" in content["effects"]
    frame = len(report(explanation(1)).encode())
    assert (content["account"] is not None) is (contributions == "auto")
    assert frame + (len(text.encode()) - frame) * 10_000 / n < most


def test_one_row_of_ten_columns_stays_below_100_kilobytes():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = RandomForestRegressor(10, random_state=0).fit(X, y)
    assert len(report(limes.TabularExplainer(model, X)(X.iloc[:1])).encode()) < 100_000


@pytest.mark.parametrize("option", [{"bandwidths": "x"}, {"effects": 1}, {"title": 3}])
def test_options_of_a_report_are_checked(option):
    with pytest.raises(InputError, match=next(iter(option))):
        explanation().to_report(**option)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(InputError, match="Is a directory"):
        explanation().to_html(tmp_path)
