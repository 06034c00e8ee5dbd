"""Refreshes by Spark after renames that views followed: as much as without, and exact."""

import random
from dataclasses import dataclass

import pyarrow as pa
import pytest

from penstock.jobs.spark.tasks import Engine
from tests.harness.data.arrow import send
from tests.harness.jobs.fake_runner import make_table
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import View, ask_create, make_iceberg_view, run_here

ROWS = pa.table(
    {
        "id": pa.array(range(40), pa.int64()),
        "a": [f"a{n}" for n in range(40)],
        "b": [f"b{n % 8}" for n in range(40)],
    }
)
OTHERS = pa.table({"b": [f"b{n}" for n in range(8)], "name": [f"n{n}" for n in range(8)]})
QUERIES = {
    "rows": "SELECT id, upper(a) AS up, b FROM t WHERE length(b) = 2",
    "groups": "SELECT b, count(*) AS n, max(a) AS m FROM t GROUP BY b",
    "a join": "SELECT t.id, t.a, u.name FROM t JOIN u ON t.b = u.b",
    "a left join": "SELECT t.id, u.name, t.b FROM t LEFT JOIN u ON u.b = t.b AND u.name <> 'n3'",
    "an Iceberg view": "SELECT id, a FROM i WHERE id > 3",
    "the whole query": "SELECT a, b FROM t ORDER BY a, id LIMIT 5",
}
# Queries that are computed as a whole, or not at all.
WHOLE = ("the whole query",)


@dataclass(frozen=True)
class Followed:
    """A view of the tables `t` and `u`, and changes of these."""

    view: View
    engine: Engine

    @property
    def server(self) -> Server:
        return self.view.server

    def name(self, table: str) -> str:
        return f"{self.view.namespace}${table}"

    def refresh(self, **body: str) -> tuple[str, str]:
        wanted = self.view.request(**body)
        job = next(each for each in self.view.runner.lease(20) if each["id"] == wanted)
        done = run_here(self.server, job, engine=self.engine)
        return done["mode"], done["reason"]

    def rename(self, table: str, *pairs: tuple[str, str]) -> None:
        for old, new in pairs:
            body = {"alterations": [{"path": old, "rename": new}]}
            path = f"/v1/table/{self.name(table)}/alter_columns?cascade=true"
            self.server.post(path, body).raise_for_status()

    def update(self, table: str, where: str, name: str, value: str) -> None:
        body = {"predicate": where, "updates": [[name, f"'{value}'"]]}
        self.server.post(f"/v1/table/{self.name(table)}/update", body).raise_for_status()

    def delete(self, table: str, where: str) -> None:
        body = {"predicate": where}
        self.server.post(f"/v1/table/{self.name(table)}/delete", body).raise_for_status()

    def has_nothing_to_do(self) -> bool:
        return bool(self.view.ask("explain").raise_for_status().json()["mode"] == "none")


def make(server: Server, engine: Engine, shape: str) -> Followed:
    source = make_table(server, ROWS)
    space = source.split("$")[0]
    send(server, f"/v1/table/{space}$u/create", OTHERS).raise_for_status()
    make_iceberg_view(server, space, "i", "SELECT id, a, b FROM t")
    ask_create(
        server, f"{space}$v", source_query=QUERIES[shape], cluster="local"
    ).raise_for_status()
    made = Followed(View(server, source, f"{space}$v", "local"), engine)
    made.refresh()
    return made


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(each, marks=() if each in ("groups", "a join") else pytest.mark.slow)
        for each in QUERIES
    ],
)
def test_a_view_is_followed_as_if_names_had_stayed(
    server: Server, engine: Engine, shape: str
) -> None:
    made = make(server, engine, shape)
    made.rename("t", ("a", "tmp"), ("b", "a"), ("tmp", "b"))
    made.rename("u", ("b", "key"))
    assert made.has_nothing_to_do()
    made.update("t", "id = 9", "b", "new")
    made.update("t", "id IN (10, 11)", "a", "b4")
    made.update("u", "key = 'b5'", "name", "other")
    made.rename("t", ("a", "first"))
    made.update("t", "id = 12", "first", "b6")
    mode, reason = made.refresh()
    assert mode == ("full" if shape in WHOLE else "incremental"), reason
    found = made.view.rows()
    made.refresh(mode="full")
    assert made.view.rows() == found
    body = {"new_table_name": "renamed"}
    server.post(f"/v1/table/{made.name('t')}/rename?cascade=true", body).raise_for_status()
    assert made.has_nothing_to_do()


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["rows", "groups", "a join", "a left join"])
@pytest.mark.parametrize("seed", range(3))
def test_histories_with_renames_are_exact(
    server: Server, engine: Engine, shape: str, seed: int
) -> None:
    pick = random.Random(seed)
    made = make(server, engine, shape)
    names = {"a": "a", "b": "b", "key": "b"}
    for _ in range(14):
        match pick.choice(["rename", "swap", "update", "update", "other", "delete", "refresh"]):
            case "rename":
                which, new = pick.choice(["a", "b", "key"]), pick.choice("wxyz")
                if new not in names.values():
                    made.rename("u" if which == "key" else "t", (names[which], new))
                    names[which] = new
            case "swap":
                one, other = names["a"], names["b"]
                made.rename("t", (one, "tmp"), (other, one), ("tmp", other))
                names |= {"a": other, "b": one}
            case "update":
                where = f"id % 13 = {pick.randrange(13)}"
                made.update("t", where, names[pick.choice("ab")], f"b{pick.randrange(9)}")
            case "other":
                where = f"{names['key']} = 'b{pick.randrange(8)}'"
                made.update("u", where, "name", f"n{pick.randrange(5)}")
            case "delete":
                made.delete("t", f"id = {pick.randrange(40)}")
            case "refresh":
                made.refresh()
    made.refresh()
    found = made.view.rows()
    made.refresh(mode="full")
    assert made.view.rows() == found
