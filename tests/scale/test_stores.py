"""Tables in object stores, explained into object stores: a real S3 server, and one that fails."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from effort import repeats
from internals import Cluster, Folder, Source, _locks, checksum, explain_files, place_of, verify, write_whole
from jobs import same
from limes.exceptions import InputError
from stores import s3

pytest.importorskip("moto.server", reason="moto, a server of S3, is not installed")


@pytest.fixture(scope="module")
def server():
    with s3() as proxy:
        yield proxy


@pytest.fixture
def bucket(server, request):
    """The URL of an empty folder, by its name."""
    server.fault = lambda method, path: None
    server.requests.clear()
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    options = f"endpoint_override=http://127.0.0.1:{server.port}&region=us-east-1"
    return lambda key: f"s3://tables/{name}/{key}?{options}"


def put(url, table, **options):
    """Store a table as an object."""
    place = place_of(url)
    with place.filesystem.open_output_stream(place.key, compression=None) as stream:
        pq.write_table(pa.Table.from_pandas(table, preserve_index=False), stream, **options)
    return url


def explain(source, explainer, out, **options):
    options = {"run": {}, "keys": ["id"], "rows_per_part": 64, "progress": False, **options}
    return explain_files(source, explainer, out, **options)


def read(url):
    place = place_of(url)
    return (
        pq.read_table(place.key, filesystem=place.filesystem)
        .to_pandas()
        .sort_values("row", ignore_index=True)
    )


def parts(url):
    return sorted(file.name for file in place_of(url).iterdir() if file.suffix == ".parquet")


@pytest.mark.parametrize("engine", repeats(["local", "dask"], ["local"]))
def test_a_table_of_a_store_is_explained_into_a_store(bucket, table, explainer, whole, engine, request):
    url = put(bucket("in.parquet"), table[0], row_group_size=100)
    where = (
        Cluster(2)
        if engine == "local"
        else Cluster(scheduler=request.getfixturevalue("cluster").scheduler_address)
    )
    summary = explain(Source.of(url), explainer, bucket("out"), engine=engine, cluster=where)
    assert (summary.rows, summary.errors, summary.resumed, summary.repeated) == (442, 0, 0, "")
    same(read(bucket("out")), whole)
    result = verify(bucket("out"), Source.of(url))
    assert result.problems == ()
    assert (result.parts, result.rows) == (7, 442)
    assert explain(Source.of(url), explainer, bucket("out")).resumed == 442


def test_files_folders_and_patterns_of_a_store_are_found(bucket, table):
    some = table[0].iloc[:10]
    for name in ("a/0.parquet", "a/1.parquet", "a/_hidden.parquet", "a/deep/2.parquet"):
        put(bucket(name), some)
    stream = pa.CompressedOutputStream(
        place_of(bucket("z.csv.gz")).filesystem.open_output_stream(
            place_of(bucket("z.csv.gz")).key, compression=None
        ),
        "gzip",
    )
    with stream:
        pa_csv.write_csv(pa.Table.from_pandas(some, preserve_index=False), stream)
    names = lambda where: [file.name for file in Source.of(bucket(where)).files]  # noqa: E731
    assert names("a") == ["0.parquet", "1.parquet", "2.parquet"]
    assert names("a/*.parquet") == ["0.parquet", "1.parquet", "_hidden.parquet"]
    assert names("a/[1-9].parquet") == ["1.parquet"]
    assert names("z.csv.gz") == ["z.csv.gz"]
    source = Source.of(bucket("z.csv.gz"))
    assert source.schema.names == [*some]
    [part] = source.parts(100, ["age"])
    assert [float(cell) for chunk in part.read(["age"]) for cell in chunk["age"].to_pylist()] == some[
        "age"
    ].tolist()
    with pytest.raises(InputError, match="no such file"):
        Source.of(bucket("nothing.parquet"))
    with pytest.raises(InputError, match=r"is no store that can be used|no such file|could not be"):
        _ = Source.of("s3://no-such-bucket/x.parquet?" + bucket("").partition("?")[2]).schema


def test_other_files_and_other_runs_are_refused(bucket, table, explainer):
    source = Source.of(put(bucket("in.parquet"), table[0].iloc[:70]))
    write_whole(place_of(bucket("full")) / "mine.txt", b"")
    with pytest.raises(InputError, match="is not empty"):
        explain(source, explainer, bucket("full"))
    explain(source, explainer, bucket("out"))
    with pytest.raises(InputError, match="rows_per_part was 64, is 10"):
        explain(source, explainer, bucket("out"), rows_per_part=10)
    place = place_of(bucket("out"))
    write_whole(place / "part-00077.parquet", b"not of this run")
    assert any("part-00077.parquet is in the folder" in problem for problem in verify(bucket("out")).problems)
    explain(source, explainer, bucket("out"))
    assert parts(bucket("out")) == ["part-00000.parquet", "part-00001.parquet"]


def test_damaged_parts_are_noticed_and_computed_again(bucket, table, explainer):
    source = Source.of(put(bucket("in.parquet"), table[0]))
    explain(source, explainer, bucket("out"))
    before, place = read(bucket("out")), place_of(bucket("out"))
    write_whole(place / "part-00002.parquet", (place / "part-00002.parquet").read_bytes()[:500])
    (place / "part-00003.parquet").unlink()
    (place / "_parts" / "part-00005.json").unlink()
    problems = "; ".join(verify(bucket("out")).problems)
    for message in (
        "part-00002.parquet was changed",
        "part-00003.parquet is missing",
        "part 5 is not in the journal",
    ):
        assert message in problems
    assert explain(source, explainer, bucket("out")).resumed == 442 - 3 * 64
    same(read(bucket("out")), before)


FAULTS = {"refused": "500", "cut off": "cut"}


@pytest.mark.parametrize("fault", repeats([*FAULTS], ["cut off"]))
def test_a_store_that_fails_during_the_run_is_reported_and_the_run_resumes(
    bucket, server, table, explainer, whole, fault
):
    source, puts = Source.of(put(bucket("in.parquet"), table[0])), []

    def fails(method, path):
        if method == "PUT" and "/part-0" in path and path.split("?")[0].endswith(".parquet"):
            puts.append(path)
            return FAULTS[fault] if "00002" in path else None
        return None

    server.fault = fails
    with pytest.raises(InputError, match=r"out could not be written.*run the same command again"):
        explain(source, explainer, bucket("out"))
    assert parts(bucket("out")) == ["part-00000.parquet", "part-00001.parquet"]
    server.fault = lambda method, path: None
    assert explain(source, explainer, bucket("out")).resumed == 128
    same(read(bucket("out")), whole)
    assert verify(bucket("out"), source).problems == ()


@pytest.mark.parametrize("step", repeats(["partNumber=2", "uploadId=", "?uploads"], ["partNumber=2"]))
def test_an_upload_that_is_cut_off_leaves_no_object(bucket, server, step):
    place = place_of(bucket("big"))
    content = np.random.default_rng(0).bytes(12 << 20)
    failing = "POST" if step != "partNumber=2" else "PUT"
    server.fault = lambda method, path: "500" if method == failing and step in path else None
    with pytest.raises(OSError, match="big"):
        write_whole(place, content)
    assert not place.is_file()
    server.fault = lambda method, path: None
    write_whole(place, content)
    assert place.read_bytes() == content
    assert checksum(place) == checksum(place)


def test_a_store_that_fails_while_a_table_is_read_makes_no_row_an_error(
    bucket, server, table, explainer, whole
):
    url = put(bucket("in.parquet"), table[0], row_group_size=100)
    source = Source.of(url)
    source.likely_rows  # noqa: B018 - footers are read
    server.fault = lambda method, path: (
        "half" if method == "GET" and path.startswith("/tables/") and "in.parquet" in path else None
    )
    with pytest.raises(InputError, match=r"in.parquet could not be read.*when the store answers"):
        explain(source, explainer, bucket("out"))
    server.fault = lambda method, path: None
    assert explain(source, explainer, bucket("out")).errors == 0
    same(read(bucket("out")), whole)


def test_a_corrupt_row_group_of_a_store_is_errors_of_its_rows(bucket, table, explainer, tmp_path):
    path = tmp_path / "in.parquet"
    table[0].to_parquet(path, row_group_size=100, index=False)
    content = bytearray(path.read_bytes())
    start = pq.read_metadata(path).row_group(1).column(0).dictionary_page_offset
    content[start : start + 2000] = b"\xff" * 2000
    place = place_of(bucket("in.parquet"))
    write_whole(place, bytes(content))
    summary = explain(Source.of(bucket("in.parquet")), explainer, bucket("out"))
    assert (summary.rows, summary.errors) == (442, 100)
    assert "row group 1 of in.parquet could not be read" in summary.reason


def test_an_input_that_is_put_again_is_another_input(bucket, table, explainer):
    source = Source.of(put(bucket("in.parquet"), table[0]))
    explain(source, explainer, bucket("out"))
    put(bucket("in.parquet"), table[0].iloc[::-1])
    with pytest.raises(InputError, match="was changed while it was being explained"):
        [part.read(["age"]) for part in source.parts(100, ["age"])]
    with pytest.raises(InputError, match="another run: input"):
        explain(Source.of(bucket("in.parquet")), explainer, bucket("out"))


def test_two_runs_in_a_folder_of_a_store_keep_out_of_each_others_way(bucket, monkeypatch, table, explainer):
    monkeypatch.setattr(_locks, "_RENEWAL", 0.1)
    source = Source.of(put(bucket("in.parquet"), table[0].iloc[:70]))
    with (
        Folder(place_of(bucket("out"))).opened({}),
        pytest.raises(InputError, match="another run is at work in s3:"),
    ):
        explain(source, explainer, bucket("out"))
    write_whole(place_of(bucket("out")) / "_lock", b'["of a dead run", 7]')
    assert explain(source, explainer, bucket("out"), run={}).rows == 70


def test_the_command_explains_and_verifies_a_store(bucket, table, tmp_path):
    import joblib
    from sklearn.linear_model import LinearRegression

    X, y = table
    put(bucket("in.parquet"), X)
    joblib.dump(LinearRegression().fit(X.drop(columns="id"), y), tmp_path / "model.joblib")
    command = [sys.executable, "-m", "limes"]
    arguments = [
        "explain-table",
        "model.joblib",
        bucket("in.parquet"),
        bucket("out"),
        "--key",
        "id",
        "--trust-pickle",
    ]
    run = subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "442 rows, exact" in run.stdout
    arguments = ["verify", bucket("out"), "--input", bucket("in.parquet")]
    check = subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stderr
    assert not [file for file in tmp_path.iterdir() if file.name.startswith("s3")]
