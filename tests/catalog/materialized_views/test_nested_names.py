"""Names in Iceberg views mean what has them now, also to the materialized views that read these."""

import random
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from tests.harness.clients import iceberg_requests as iceberg
from tests.harness.data.arrow import send
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import View, ask_create, make_iceberg_view

BY_FORCE = {"force": "true"}


@dataclass
class Nest:
    """A materialized view `m` of the Iceberg view `b`, which reads `a`, which reads table `t`."""

    server: Server
    space: str
    m: View
    # What each name means: the one row of a table, or the name that an Iceberg view reads.
    means: dict[str, int | str] = field(default_factory=dict)
    made: int = 0
    log: list[str] = field(default_factory=list)

    def make_table(self, name: str) -> None:
        """A table of one row that no other table has."""
        self.made += 1
        rows = pa.table({"id": pa.array([self.made], pa.int64())})
        send(self.server, f"/v1/table/{self.space}${name}/create", rows).raise_for_status()
        self.means[name] = self.made
        self.log.append(f"table {name} has row {self.made}")

    def make_view(self, name: str, of: str) -> None:
        make_iceberg_view(self.server, self.space, name, f"SELECT id FROM {of}")
        self.means[name] = of
        self.log.append(f"view {name} reads {of}")

    def rename(self, name: str, new: str) -> None:
        """Views by the route of Iceberg's clients, which is never refused."""
        if isinstance(self.means[name], str):
            iceberg.rename(self.space, name, new).send(self.server).raise_for_status()
        else:
            self.force(f"table/{self.space}${name}/rename", {"new_table_name": new})
        self.means[new] = self.means.pop(name)
        self.log.append(f"rename {name} to {new}")

    def drop(self, name: str) -> None:
        kind = "view" if isinstance(self.means[name], str) else "table"
        self.force(f"{kind}/{self.space}${name}/drop", {})
        del self.means[name]
        self.log.append(f"drop {name}")

    def force(self, path: str, body: dict[str, str]) -> None:
        asked = self.server.client.post(f"/v1/{path}", json=body, params={"force": "true"})
        asked.raise_for_status()

    @property
    def row(self) -> int | None:
        """The row that `b` has; None where it cannot be read."""
        name, seen = "b", set[str]()
        while isinstance(found := self.means.get(name), str) and name not in seen:
            seen.add(name)
            name = found
        return found if isinstance(found, int) else None

    @property
    def is_stale(self) -> bool:
        return self.m.tell()["stale"] == "true"

    def check(self) -> None:
        """Refresh the view, and compare it with its query."""
        answer = self.m.ask("refresh", {"cluster": self.m.cluster})
        if self.row is None:
            assert answer.status_code == 400, (answer.text, self.log)
            assert self.is_stale, self.log
            return
        assert answer.status_code == 202, (answer.text, self.log)
        self.m.work()
        assert self.m.rows() == [(self.row,)], self.log
        assert not self.is_stale, self.log


@pytest.fixture
def nest(server: Server, namespace: str, cluster: str) -> Nest:
    made = Nest(server, namespace, View(server, f"{namespace}$t", f"{namespace}$m", cluster))
    made.make_table("t")
    made.make_view("a", "t")
    made.make_view("b", "a")
    ask_create(server, made.m.id, source_query="SELECT id FROM b").raise_for_status()
    made.check()
    return made


def test_a_table_that_takes_the_name_of_a_renamed_one_is_read(nest: Nest) -> None:
    nest.rename("t", "old")
    assert nest.is_stale
    nest.check()
    nest.make_table("t")
    nest.check()


def test_a_view_that_takes_the_name_of_a_renamed_one_is_read(nest: Nest) -> None:
    nest.make_table("u")
    nest.rename("a", "old")
    nest.make_view("a", "u")
    assert nest.is_stale
    nest.check()


def test_what_takes_the_name_of_something_dropped_by_force_is_read(nest: Nest) -> None:
    nest.drop("t")
    nest.check()
    nest.make_table("t")
    nest.check()
    nest.drop("a")
    nest.check()
    nest.make_view("a", "t")
    nest.check()


def test_the_view_s_own_name_means_what_it_did_where_an_iceberg_view_has_it_too(nest: Nest) -> None:
    sql = "SELECT x.id, y.id AS other FROM t AS x JOIN b AS y ON x.id = y.id"
    both = View(nest.server, nest.m.source, f"{nest.space}$both", nest.m.cluster)
    ask_create(nest.server, both.id, source_query=sql).raise_for_status()
    nest.rename("t", "old")
    nest.make_table("t")
    # Twice, because the first request records what the names mean now.
    for _ in range(2):
        both.request()
        job = both.lease()
        definition = job["spec"]["definition"]
        tables = {definition["sql"].index(s["name"]): s["table"][-1] for s in definition["sources"]}
        assert [tables[place] for place in sorted(tables)] == ["old", "t"]
        both.runner.finish(job, "FAILED").raise_for_status()


def test_what_a_name_does_not_mean_any_more_may_go(nest: Nest) -> None:
    nest.rename("t", "old")
    nest.make_table("t")
    path = f"/v1/table/{nest.space}$old"
    assert nest.server.post(f"{path}/dependents", {}).json()["dependents"] == []
    told = nest.server.post(f"/v1/table/{nest.space}$t/dependents", {}).json()["dependents"]
    assert [each["id"][-1] for each in told] == ["a"]
    nest.server.post(f"{path}/drop", {}).raise_for_status()
    nest.check()
    refused = nest.server.post(f"/v1/table/{nest.space}$t/drop", {})
    assert (refused.status_code, nest.m.id in refused.json()["error"]) == (409, True)


def test_what_followed_a_rename_is_read_under_its_new_name(nest: Nest) -> None:
    path, body = f"/v1/table/{nest.space}$a/rename", {"new_table_name": "c"}
    asked = nest.server.client.post(path, json=body, params={"cascade": "true"})
    asked.raise_for_status()
    nest.means |= {"c": nest.means.pop("a"), "b": "c"}
    for _ in range(2):
        dropped = iceberg.drop(nest.space, "c").send(nest.server)
        assert (dropped.status_code, nest.m.id in dropped.text) == (409, True)
        nest.check()


def test_what_has_a_name_at_the_root_is_not_taken_away_and_gives_way(nest: Nest) -> None:
    name, path = f"root_{nest.space}", f"/v1/table/root_{nest.space}"
    nest.means[name] = nest.made = 7
    rows = pa.table({"id": pa.array([7], pa.int64())})
    send(nest.server, f"{path}/create", rows).raise_for_status()
    nest.drop("a")
    nest.make_view("a", name)
    nest.check()
    for operation, body in (("rename", {"new_table_name": "other"}), ("drop", {})):
        refused = nest.server.post(f"{path}/{operation}", body)
        assert (refused.status_code, f"{nest.space}$a" in refused.json()["error"]) == (409, True)
    nest.make_table(name)
    assert nest.is_stale
    nest.check()
    nest.rename(name, "elsewhere")
    nest.means[name] = 7
    nest.check()
    into = {"new_table_name": "u", "new_namespace_id": [nest.space]}
    moved = nest.server.client.post(f"{path}/rename", json=into, params={"cascade": "true"})
    moved.raise_for_status()
    nest.means |= {"u": 7, "a": "u"}
    nest.check()


NAMES = ("a", "t", "u", "v")
STEPS = ("rename", "drop", "make_table", "make_view", "check")


@pytest.mark.parametrize("seed", range(4))
def test_random_renames_drops_and_creations(nest: Nest, seed: int) -> None:
    chosen = random.Random(seed)
    for _ in range(16):
        taken = [each for each in NAMES if each in nest.means]
        free = [each for each in NAMES if each not in nest.means]
        match chosen.choice(STEPS):
            case "rename" if taken and free:
                nest.rename(chosen.choice(taken), chosen.choice(free))
            case "drop" if taken:
                nest.drop(chosen.choice(taken))
            case "make_table" if free:
                nest.make_table(chosen.choice(free))
            case "make_view" if free:
                nest.make_view(chosen.choice(free), chosen.choice(NAMES))
            case "check":
                nest.check()
        assert nest.is_stale or nest.m.rows() == [(nest.row,)], nest.log
    nest.check()
