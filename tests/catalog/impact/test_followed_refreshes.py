"""Refreshes of views after renames that they followed: only what changed is computed."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest
from tests.harness.data.arrow import send
from tests.harness.data.calls import take_calls
from tests.harness.data.tables import open_by_path
from tests.harness.jobs.fake_runner import make_table
from tests.harness.jobs.held_attempt import once
from tests.harness.processes.servers import Server
from tests.harness.views.runner_views import recording, to_base64, udtf_spec
from tests.harness.views.server_views import View, ask_create, head, run_here

ON_SQLITE = pytest.mark.parametrize("server", ["sqlite"], indirect=True)
ROWS = pa.table(
    {
        "id": pa.array(range(20), pa.int64()),
        "a": [f"a{n}" for n in range(20)],
        "b": [f"b{n % 3}" for n in range(20)],
        "doc": [{"text": f"t{n}"} for n in range(20)],
    }
)


def make(server: Server, cluster: str, query: str, **body: Any) -> View:
    source = make_table(server, ROWS)
    id = f"{source.split('$')[0]}$v"
    ask_create(server, id, **{"cluster": cluster, "source_query": query} | body).raise_for_status()
    view = View(server, source, id, cluster)
    refresh(view)
    return view


def refresh(view: View) -> dict[str, Any]:
    view.request()
    return run_here(view.server, view.lease())


def rename(view: View, *pairs: tuple[str, str]) -> None:
    for old, new in pairs:
        body = {"alterations": [{"path": old, "rename": new}]}
        path = f"/v1/table/{view.source}/alter_columns?cascade=true"
        view.server.post(path, body).raise_for_status()


def update(view: View, where: str, **values: str) -> None:
    body = {"predicate": where, "updates": [[name, text] for name, text in values.items()]}
    view.server.post(f"/v1/table/{view.source}/update", body).raise_for_status()


def explain(view: View) -> dict[str, Any]:
    return dict(view.ask("explain").raise_for_status().json())


def test_a_view_that_followed_a_rename_has_nothing_to_do(server: Server, cluster: str) -> None:
    view = make(
        server, cluster, "SELECT id, a, concat(b, '!') AS up, doc.text AS t FROM t WHERE b <> 'b0'"
    )
    before, version = view.rows(), head(server, view.id)
    rename(view, ("a", "first"), ("b", "second"), ("doc", "paper"))
    plan = explain(view)
    assert (plan["mode"], plan["reason"]) == ("none", "nothing that the view reads has changed")
    assert refresh(view)["mode"] == "none"
    assert (view.rows(), head(server, view.id)) == (before, version)
    update(view, "id = 1", first="'new'", paper="named_struct('text', 'n')")
    done = refresh(view)
    assert (done["mode"], done["rows_updated"], done["rows_inserted"]) == ("incremental", 1, 0)
    assert (1, "new", "b1!", "n") in view.rows()


@ON_SQLITE
def test_what_changed_before_a_rename_is_what_is_computed(server: Server, cluster: str) -> None:
    view = make(server, cluster, "SELECT id, concat(a, b) AS c FROM t WHERE b <> 'b0'")
    update(view, "id IN (1, 3)", a="'before'")
    rename(view, ("a", "first"))
    update(view, "id = 2", first="'after'")
    rename(view, ("b", "second"))
    done = refresh(view)
    assert (done["mode"], done["rows_updated"]) == ("incremental", 2)
    found = dict(view.rows())
    assert (found[1], found[2], found[4]) == ("beforeb1", "afterb2", "a4b1")


@ON_SQLITE
def test_swapped_names_mean_the_same_columns(server: Server, cluster: str) -> None:
    view = make(server, cluster, "SELECT id, a, b FROM t WHERE a <> 'a5'")
    swap = ("a", "tmp"), ("b", "a"), ("tmp", "b")
    before = view.rows()
    rename(view, *swap)
    assert refresh(view)["mode"] == "none"
    rename(view, *swap)
    # What the other column held.
    update(view, "id = 7", a="'b1'", b="'a7'")
    done = refresh(view)
    assert (done["mode"], done["rows_updated"]) == ("incremental", 1)
    assert view.rows() == [row if row[0] != 7 else (7, "b1", "a7") for row in before]


@ON_SQLITE
def test_a_rename_while_a_refresh_runs_leaves_the_view_right(server: Server, cluster: str) -> None:
    view = make(server, cluster, "SELECT id, a FROM t")
    update(view, "id = 7", a="'new'")
    view.request()
    swap = once(lambda: rename(view, ("a", "tmp"), ("b", "a"), ("tmp", "b")))
    run_here(server, view.lease(), swap)
    assert (7, "new") in view.rows()
    update(view, "id = 8", b="'new'")
    done = refresh(view)
    assert (done["mode"], done["rows_updated"]) == ("incremental", 1)
    assert {(7, "new"), (8, "new"), (9, "a9")} <= set(view.rows())


@ON_SQLITE
def test_a_job_that_was_leased_before_names_were_swapped_does_not_read_the_other_column(
    server: Server, cluster: str
) -> None:
    view = make(server, cluster, "SELECT id, a FROM t")
    before = view.rows()
    update(view, "id = 7", a="'new'")
    view.request()
    job = view.lease()
    rename(view, ("a", "tmp"), ("b", "a"), ("tmp", "b"))
    with pytest.raises(InvalidRequest, match="column a is called b"):
        run_here(server, job)
    view.runner.finish(job, "FAILED", error="names").raise_for_status()
    assert view.rows() == before
    assert refresh(view)["mode"] == "incremental"
    assert view.rows() == [row if row[0] != 7 else (7, "new") for row in before]


@ON_SQLITE
def test_a_renamed_table_is_the_same_source(server: Server, cluster: str) -> None:
    view = make(server, cluster, "SELECT id, a FROM t")
    server.post(f"/v1/table/{view.source}/rename", {"new_table_name": "u"}).raise_for_status()
    assert explain(view)["mode"] == "none"


def name_parts(a: str, c: str) -> Any:
    for part in (a, c):
        yield {"part": part}


def count_rows(table: Any) -> Any:
    return [{"first": min(table["c"].to_pylist()), "rows": len(table)}] if len(table) else None


FUNCTIONS: dict[str, tuple[Any, list[str], dict[str, Any], dict[str, Any]]] = {
    "chunker": (name_parts, ["a", "c"], {"part": pa.string()}, {}),
    "udtf": (
        count_rows,
        ["b", "c"],
        {"first": pa.string(), "rows": pa.int64()},
        {"partition_by": "b", "input_columns": ["b", "c"]},
    ),
}


@ON_SQLITE
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_a_function_is_called_for_what_changed(
    server: Server, cluster: str, tmp_path: Path, kind: str
) -> None:
    log = tmp_path / "calls"
    view = make_of(kind, server, cluster, log)
    before = view.rows()
    take_calls(log)
    rename(view, ("a", "first"))
    update(view, "id = 1", first="'A'")
    rename(view, ("b", "a"), ("first", "b"))
    done = refresh(view)
    assert (done["mode"], len(take_calls(log))) == ("incremental", 1)
    found = view.rows()
    assert len(found) == len(before)
    assert len({*found} - {*before}) == (2 if kind == "chunker" else 1)
    rename(view, ("a", "tmp"), ("b", "a"), ("tmp", "b"))
    assert explain(view)["mode"] == "none"
    if kind == "chunker":
        # Back to its first value, which only an inherited column has.
        update(view, "id = 2", b="'b1'")
        assert refresh(view)["mode"] == "incremental"
    found = view.rows()
    view.request(mode="full")
    run_here(server, view.lease())
    assert view.rows() == found


def make_of(kind: str, server: Server, cluster: str, log: Path) -> View:
    """A view of `a`, and of `a` and `b` together, where `b` is not b0."""
    if kind == "query":
        query = "SELECT id, a, concat(b, a) AS both FROM t WHERE b <> 'b0'"
        return make(server, cluster, query)
    call, inputs, outputs, more = FUNCTIONS[kind]
    inherited = {"id": pa.int64(), "b": pa.string()} if kind == "chunker" else {}
    return make(
        server,
        cluster,
        "SELECT id, a, b, concat(a, b) AS c FROM t WHERE b <> 'b0'",
        kind=kind,
        udtf_spec=udtf_spec(kind, recording(log, call), inputs, outputs, **more),
        output_schema=to_base64({**inherited, **outputs}),
    )


@ON_SQLITE
@pytest.mark.parametrize("kind", ["query", *FUNCTIONS])
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=pytest.mark.slow if n else ()) for n in range(12)]
)
def test_histories_with_renames_are_exact(
    server: Server, cluster: str, tmp_path: Path, kind: str, seed: int
) -> None:
    pick = random.Random(seed)
    view = make_of(kind, server, cluster, tmp_path / "calls")
    names = {"a": "a", "b": "b"}
    steps = ["rename", "update", "delete", "insert", "swap", "refresh", "compact", "alter"]
    for step in range(12):
        match pick.choice(steps):
            case "rename":
                which, new = pick.choice("ab"), pick.choice("xyz")
                if new not in names.values():
                    rename(view, (names[which], new))
                    names[which] = new
            case "swap":
                one, other = names["a"], names["b"]
                rename(view, (one, "tmp"), (other, one), ("tmp", other))
                names = {"a": other, "b": one}
            case "update":
                column = names[pick.choice("ab")]
                update(view, f"id % 5 = {pick.randrange(5)}", **{column: f"'b{pick.randrange(3)}'"})
            case "delete":
                body = {"predicate": f"id = {pick.randrange(20)}"}
                server.post(f"/v1/table/{view.source}/delete", body).raise_for_status()
            case "insert":
                rows = ROWS.slice(step, 1).rename_columns(["id", names["a"], names["b"], "doc"])
                send(server, f"/v1/table/{view.source}/insert", rows).raise_for_status()
            case "compact":
                open_by_path(server, view.source).optimize.compact_files()
            case "alter":
                a, b = names["a"], names["b"]
                more = f"{b} AS b, concat({a}, {b}) AS c"
                more = more if kind in FUNCTIONS else f"concat({b}, {a}) AS both"
                wanted = f"SELECT id, {a} AS a, {more} FROM t"
                answer = view.ask(
                    "alter",
                    {
                        "cluster": cluster,
                        "preview": False,
                        "source_query": f"{wanted} WHERE {b} <> 'b{pick.randrange(3)}'",
                    },
                )
                if answer.status_code == 202:
                    assert run_here(server, view.lease())["mode"] == "incremental"
            case "refresh":
                assert refresh(view)["mode"] in ("none", "incremental")
    refresh(view)
    found = view.rows()
    view.request(mode="full")
    run_here(server, view.lease())
    assert view.rows() == found


def alter(view: View, **body: Any) -> dict[str, Any]:
    """Alter a view, as was told before; returns what was told."""
    told: dict[str, Any] = view.ask("explain_alter", body).raise_for_status().json()
    answer = view.ask("alter", {"cluster": view.cluster, "preview": False} | body)
    assert answer.status_code == 202, answer.text
    assert run_here(view.server, view.lease())["mode"] == told["mode"]
    return told


@ON_SQLITE
def test_an_alteration_after_a_rename_keeps_rows(server: Server, cluster: str) -> None:
    view = make_of("query", server, cluster, Path())
    rename(view, ("a", "first"), ("b", "second"))
    update(view, "id = 1", first="'new'")
    wanted = "SELECT id, first AS a, concat(second, first) AS both, id AS n FROM t"
    told = alter(view, source_query=f"{wanted} WHERE second <> 'b0'")
    assert (told["mode"], told["rows_staying"], told["rows_to_insert"]) == ("incremental", 12, 0)
    assert {(1, "new", "b1new", 1), (2, "a2", "b2a2", 2)} <= {*view.rows()}
    assert explain(view)["mode"] == "none"


@ON_SQLITE
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_an_alteration_after_a_rename_calls_functions_for_what_changed(
    server: Server, cluster: str, tmp_path: Path, kind: str
) -> None:
    log = tmp_path / "calls"
    view = make_of(kind, server, cluster, log)
    rename(view, ("a", "b2"), ("b", "a"))
    update(view, "id = 1", b2="'A'")
    take_calls(log)
    more = ", doc.text AS t" if kind == "chunker" else ""
    query = f"SELECT id, b2 AS a, a AS b, concat(b2, a) AS c{more} FROM t WHERE a IN ('b1', 'b2')"
    told = alter(view, source_query=query)
    assert (told["mode"], len(take_calls(log))) == ("incremental", 1)
    found = view.rows()
    view.request(mode="full")
    run_here(server, view.lease())
    assert view.rows() == found
