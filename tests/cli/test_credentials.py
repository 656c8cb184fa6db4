"""Credentials in URLs are refused wherever a URL may be written, and no message repeats them."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LinearRegression

from internals import StorePath, place_of, program, without_credentials
from limes.exceptions import InputError

SECRET = "hunter2"  # noqa: S105 - opens nothing
OPTIONS = [
    "access_key",
    "secret_key",
    "session_token",
    "client_secret",
    "account_key",
    "sig",
    "Signature",
    "password",
]


@pytest.fixture
def files(tmp_path, monkeypatch):
    X = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) % 3})
    skops.io.dump(LinearRegression().fit(X, X["a"]), tmp_path / "m.skops")
    X.to_parquet(tmp_path / "t.parquet")
    monkeypatch.chdir(tmp_path)


URL = f"s3://user:{SECRET}@bank/in"
QUERY = f"s3://bank/in?secret_key={SECRET}"


@pytest.mark.parametrize("url", [URL, QUERY, f"s3:///user:{SECRET}@bank/in"])
@pytest.mark.parametrize(
    "command",
    [
        "explain-table m.skops {} out",
        "explain-table m.skops t.parquet {}",
        "explain-table {} t.parquet out",
        "explain-table m.skops t.parquet out --background {}",
        "explain-table m.skops t.parquet out --summary {}",
        "verify {}",
        "verify out --input {}",
        "summary {}",
        "explain {} t.parquet",
        "explain m.skops {}",
        "explain m.skops t.parquet --background {}",
        "explain m.skops t.parquet --html {}",
        "diagnose m.skops {}",
        "app m.skops {}",
    ],
)
def test_no_command_takes_or_repeats_a_credential(files, url, command, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["limes", *(part.format(url) for part in command.split())])
    assert program.run() != 0
    output = "".join(capsys.readouterr())
    assert output.strip()
    assert SECRET not in output
    assert "Traceback" not in output


@pytest.mark.parametrize("kind", ["s3", "gs", "abfs"])
@pytest.mark.parametrize("option", OPTIONS)
def test_options_that_hold_a_credential_are_refused_by_name(kind, option):
    with pytest.raises(InputError, match=f"leave out the option {option}, whose") as refused:
        place_of(f"{kind}://bank/in?region=eu-west-1&{option}={SECRET}")
    assert SECRET not in str(refused.value)
    assert "AWS_SECRET_ACCESS_KEY" in str(refused.value)


def test_an_address_in_an_option_has_no_user():
    with pytest.raises(InputError, match="leave out the option endpoint_override") as refused:
        place_of(f"s3://bank/in?endpoint_override=http://user:{SECRET}@127.0.0.1:9000")
    assert SECRET not in str(refused.value)


def test_other_options_are_taken():
    place = place_of("s3://bank/in?region=eu-west-1&endpoint_override=http://127.0.0.1:9000")
    assert isinstance(place, StorePath)


def test_texts_keep_what_is_no_credential():
    for text in ("a: b@c", "C:/x@y", "s3://bank/a@b?region=eu", "rate 5 % at x@y.z", "gs://bank/x?a=1&b=2"):
        assert without_credentials(text) == text
    assert without_credentials(f"{URL} {QUERY}") == "s3://bank/in s3://bank/in?secret_key=..."
