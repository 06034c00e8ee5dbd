"""Files of every format give the same rows; what is wrong is told by file, line and column."""

import datetime
import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from penstock.errors import InvalidRequest, PenstockError
from penstock.sdk.rows.files import FileOptions, find_files
from penstock.sdk.rows.reading import open_files, open_rows
from tests.harness.processes.s3 import SECRETS, Store

ROWS: list[dict[str, Any]] = [
    {"id": 1, "text": 'a, "b"\nc', "share": 1.5},
    {"id": 2, "text": "", "share": None},
    {"id": 3, "text": None, "share": 2.0},
]
CSV = 'id,text,share\n1,"a, ""b""\nc",1.5\n2,"",\n3,,2\n'
JSON = (
    '{"id":1,"text":"a, \\"b\\"\\nc","share":1.5}\n{"id":2,"text":"","share":null}\n\n'
    '{"id":3,"share":2}\n'
)


def read(given: Any, *types: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = open_rows(given, *types).reader().read_all().to_pylist()
    return found


def test_files_of_every_format_have_the_same_rows(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "a.tsv").write_text(CSV.replace(",", "\t").replace("a\t", "a,"))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    (tmp_path / "a.jsonl").write_text(JSON)
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    feather.write_feather(pa.Table.from_pylist(ROWS), tmp_path / "a.arrow")
    for name in ("a.csv", "a.tsv", "a.csv.gz", "a.jsonl", "a.parquet", "a.arrow"):
        assert read(tmp_path / name) == ROWS, name


def test_types_that_texts_have_no_word_for_are_read_as_they_are_written(tmp_path: Path) -> None:
    known = pa.schema(
        [
            ("v", pa.list_(pa.float32(), 2)),
            ("bytes", pa.binary()),
            ("at", pa.time64("us")),
            ("day", pa.date32()),
            ("kinds", pa.map_(pa.string(), pa.int64())),
            ("half", pa.float16()),
            ("in", pa.struct([("a", pa.int64())])),
        ]
    )
    (tmp_path / "a.csv").write_text(
        "v,bytes,at,day,kinds,half,in\n"
        '"[1, 2]",aGk=,12:00:01,2026-01-02,"{""a"": 1}",0.5,"{""a"": 3}"\n,,,,,,\n'
    )
    (tmp_path / "a.jsonl").write_text(
        '{"v":[1,2],"bytes":"aGk=","at":"12:00:01","day":"2026-01-02","kinds":{"a":1},"half":0.5,'
        '"in":{"a":3}}\n{}\n'
    )
    full = {
        "v": [1.0, 2.0],
        "bytes": b"hi",
        "at": datetime.time(12, 0, 1),
        "day": datetime.date(2026, 1, 2),
        "kinds": [("a", 1)],
        "half": 0.5,
        "in": {"a": 3},
    }
    for name in ("a.csv", "a.jsonl"):
        assert read(tmp_path / name, None, known) == [full, dict.fromkeys(full)], name


def test_a_folder_gives_its_files_and_what_its_folders_are_called(tmp_path: Path) -> None:
    for year, city in ((2025, "a%20b"), (2026, "__HIVE_DEFAULT_PARTITION__")):
        place = tmp_path / f"year={year}" / f"city={city}"
        place.mkdir(parents=True)
        pq.write_table(pa.table({"id": [year]}), place / "x.parquet")
        (place / "_SUCCESS").write_text("")
        (place / "notes.md").write_text("no rows")
    rows = [
        {"id": 2025, "year": 2025, "city": "a b"},
        {"id": 2026, "year": 2026, "city": None},
    ]
    assert read(tmp_path) == read(str(tmp_path / "**" / "*.parquet")) == rows
    assert read(str(tmp_path / "year=202[6]" / "*" / "?.parquet")) == rows[1:]


def test_files_share_the_columns_of_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,n\n1,2\n")
    (tmp_path / "b.jsonl").write_text('{"id":2.5,"m":"x"}\n')
    both = [{"id": 1.0, "n": 2, "m": None}, {"id": 2.5, "n": None, "m": "x"}]
    assert read([tmp_path / "a.csv", tmp_path / "b.jsonl"]) == both
    assert read(tmp_path, {"n": str})[0]["n"] == "2"
    (tmp_path / "c.csv").write_text("id\nx\n")
    with pytest.raises(PenstockError, match=r"c\.csv has other types than the files before it.*id"):
        read(tmp_path)


WRONG: dict[str, tuple[str | bytes, str]] = {
    "value.csv": ("id\n" + "123456789\n" * 1_000_000 + "x\n", "'id' of .*, line 1,000,002: 'x' is"),
    "fields.csv": ("a,b\n1,2\n1,2,3\n", "line 3, has 3 fields, and its first line has 2"),
    "twice.csv": ("a,a\n1,2\n", "twice.csv has two columns 'a'"),
    "empty.csv": ("", "is empty"),
    "latin.csv": (b"a\ncaf\xe9\n", "'a' of .* is not UTF-8"),
    "value.jsonl": ('{"id":1}\n' * 1_000_000 + '{"id":"x"}\n', "'id' of .*, line 1,000,001, is no"),
    "first.jsonl": ('{"id":1}\n\n{"id":"x"}\n', "'id' of .*, line 3, is a string"),
    "field.jsonl": ('{"id":1}\n' * 1_000_000 + '{"z":1}\n', "line 1,000,001, has field 'z'"),
    "broken.jsonl": ('{"id":1}\n{"id":\n', "line 2, is no object"),
    "list.json": ('[{"id":1}]', "is a JSON list"),
    "no.parquet": ("hello", "no sound Parquet file"),
    "no.arrow": ("hello", "no sound Arrow file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_in_a_file_is_told(tmp_path: Path, name: str) -> None:
    content, told = WRONG[name]
    place = tmp_path / name
    place.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(PenstockError, match=told) as refused:
        read(place)
    assert refused.value.detail
    assert name in refused.value.message


def test_a_value_that_does_not_fit_the_table_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('v\n"[1, 2]"\n"[1]"\n')
    known = pa.schema([("v", pa.list_(pa.float32(), 2))])
    with pytest.raises(PenstockError, match=r"'v' of .*a\.csv, line 3, does not fit"):
        read(tmp_path / "a.csv", None, known)
    pq.write_table(pa.table({"v": [1, 2**40]}), tmp_path / "a.parquet")
    with pytest.raises(PenstockError, match=r"'v' of .*a\.parquet, row 2, does not fit"):
        read(tmp_path / "a.parquet", None, pa.schema([("v", pa.int32())]))


def test_names_that_lead_nowhere_are_told(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("")
    for given, told in (
        (tmp_path / "none.csv", "there is no file"),
        (str(tmp_path / "*.csv"), "no file matches"),
        (tmp_path, "no file of rows in"),
        (tmp_path / "notes.md", "does not tell what is in it"),
        ("https://example.org/a.csv", "an address that is not known"),
    ):
        with pytest.raises(InvalidRequest, match=told):
            read(given)


def test_options_tell_what_a_name_does_not(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("id;n\n1;NA\n2;3\n")
    files = find_files(tmp_path / "a.txt", FileOptions("csv", ";", ("NA",)))
    heard: list[int] = []
    rows = open_files(files, tell=lambda file, done: heard.append(done))
    assert rows.reader().read_all().to_pylist() == [{"id": 1, "n": None}, {"id": 2, "n": 3}]
    assert heard[-1] == files[0].size


def test_files_of_a_store_are_found_with_the_usual_credentials(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", store.options["aws_endpoint"])
    for name, value in SECRETS.items():
        monkeypatch.setenv(name.upper(), value)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    store.bucket.put_object(Key="in/year=2026/a b.csv", Body=CSV.encode())
    expected = [row | {"year": 2026} for row in ROWS]
    assert read("s3://bucket/in/year=2026/a b.csv") == ROWS
    assert read("s3://bucket/in") == read("s3://bucket/in/*/*.csv") == expected
    with pytest.raises(InvalidRequest, match="there is no file s3://bucket/none"):
        read("s3://bucket/none.csv")
