"""Random histories of a table with a function's column, beside a model of it in plain Python."""

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from tests.harness.jobs.filled_tables import some_rows
from tests.harness.jobs.function_tables import FunctionTable


@dataclass
class Row:
    """A row as it must be, and what its value was computed from, in which version."""

    text: str
    number: int
    value: str | None = None
    filled: tuple[str, int, str] | None = None

    def is_fresh(self, version: str) -> bool:
        return self.filled == (self.text, self.number, version) and self.value == compute(
            self.text, self.number, version
        )


Rows = dict[int, Row]


def compute(text: str, number: int, version: str) -> str:
    return f"{version}/{text}/{number}"


class History:
    """A table and its model, which go through the same operations."""

    def __init__(self, table: FunctionTable, seed: int) -> None:
        self.table = table
        self.chance = random.Random(seed)
        self.version = "1"
        self.branch = ""
        self.rows: dict[str, Rows] = {"": {}}
        # What a branch looked like in each of its versions.
        self.past: dict[str, dict[int, Rows]] = {"": {}}
        self.next_id = 1000
        self.steps: list[str] = []
        self.use("1")
        for row in table.open().to_table(columns=["id", "text", "number"]).to_pylist():
            self.rows[""][row["id"]] = Row(row["text"], row["number"])
        self.note()

    @property
    def now(self) -> Rows:
        return self.rows[self.branch]

    def use(self, version: str) -> None:
        self.version = version
        self.table.use(lambda text, number: f"{version}/{text}/{number}", version)

    def note(self) -> None:
        opened = self.table.open(self.branch)
        self.past[self.branch][opened.version] = copy.deepcopy(self.now)

    def some(self) -> tuple[str, Callable[[int], bool]]:
        """A condition on ids, for Lance and for Python."""
        modulus = self.chance.choice([2, 3, 7])
        rest = self.chance.randrange(modulus)
        return f"id % {modulus} = {rest}", lambda n: n % modulus == rest

    def step(self) -> None:
        names = [name for name in dir(self) if name.startswith("do_")]
        weights = [3 if name.startswith("do_fill") else 2 for name in names]
        name = self.chance.choices(names, weights)[0]
        self.steps.append(f"{self.branch or 'main'} {self.table.open(self.branch).version} {name}")
        getattr(self, name)()
        self.note()

    # What others do --------------------------------------------------------------------------

    def do_append(self) -> None:
        count = self.chance.randrange(1, 9)
        rows = some_rows(self.next_id, count)
        if self.chance.random() < 0.5:
            rows = rows.append_column("value", pa.nulls(count, pa.string()))
        self.table.open(self.branch).insert(rows)
        for row in rows.to_pylist():
            self.now[row["id"]] = Row(row["text"], row["number"])
        self.next_id += count

    def do_update_input(self) -> None:
        where, matches = self.some()
        number = self.chance.randrange(3)
        self.table.open(self.branch).update({"number": str(number)}, where=where)
        for id, row in self.now.items():
            if matches(id):
                row.number = number

    def do_update_other(self) -> None:
        self.table.open(self.branch).update({"other": "other + 1"}, where=self.some()[0])

    def do_write_value(self) -> None:
        where, matches = self.some()
        value = self.chance.choice(["foreign", None])
        shown = "NULL" if value is None else f"'{value}'"
        self.table.open(self.branch).update({"value": shown}, where=where)
        for id, row in self.now.items():
            if matches(id):
                row.value = value

    def do_delete(self) -> None:
        where, matches = self.some()
        where += " AND id % 5 = 1"
        self.table.open(self.branch).delete(where)
        for id in [id for id in self.now if matches(id) and id % 5 == 1]:
            del self.now[id]

    def do_merge_some_columns(self) -> None:
        ids = [id for id in self.now if self.chance.random() < 0.2]
        news = pa.table({"id": pa.array(ids, pa.int64()), "text": ["merged"] * len(ids)})
        self.table.open(self.branch).merge_insert("id").when_matched_update_all().execute(news)
        for id in ids:
            self.now[id].text = "merged"

    def do_merge_whole_rows(self) -> None:
        known = [id for id in self.now if self.chance.random() < 0.1]
        ids = [*known, self.next_id, self.next_id + 1]
        self.next_id += 2
        news = pa.concat_tables(some_rows(id, 1) for id in ids)
        news = news.append_column("value", pa.nulls(len(ids), pa.string()))
        builder = self.table.open(self.branch).merge_insert("id")
        builder.when_matched_update_all().when_not_matched_insert_all().execute(news)
        for row in news.to_pylist():
            self.now[row["id"]] = Row(row["text"], row["number"])

    def do_compact(self) -> None:
        size = self.chance.choice([15, 30, 1000])
        self.table.open(self.branch).optimize.compact_files(target_rows_per_fragment=size)

    def do_change_columns(self) -> None:
        dataset = self.table.open(self.branch)
        if "more" in dataset.schema.names:
            dataset.drop_columns(["more"])
        else:
            dataset.add_columns({"more": "id * 2"})

    def do_restore(self) -> None:
        marks = self.table.watermarks.get(self.branch, [])
        oldest = marks[-1].version if marks else 0
        versions = [v for v in self.past[self.branch] if v >= oldest]
        version = self.chance.choice(versions)
        dataset = self.table.open(self.branch)
        earlier: Any = dataset.checkout_version((self.branch or None, version))
        earlier.restore()
        self.rows[self.branch] = copy.deepcopy(self.past[self.branch][version])

    def do_switch_branch(self) -> None:
        if "dev" not in self.rows:
            self.table.branch("dev")
            self.rows["dev"] = copy.deepcopy(self.rows[""])
            self.past["dev"] = {}
        self.branch = "dev" if self.branch == "" else ""

    def do_use_another_version(self) -> None:
        if self.chance.random() < 0.4:
            self.use(str(int(self.version) + 1))

    # Backfills -------------------------------------------------------------------------------

    def do_fill(self) -> None:
        self.fill()

    def do_fill_again(self) -> None:
        self.fill()

    def do_fill_some(self) -> None:
        where, matches = self.some()
        self.fill(matches, where=where)

    def do_fill_fragments(self) -> None:
        self.fill(num_frags=self.chance.choice([1, 2]))

    def fill(self, matches: Callable[[int], bool] = lambda _: True, **options: Any) -> None:
        """Backfill, and see that exactly the rows that need it were computed."""
        wanted = {
            id for id, row in self.now.items() if matches(id) and not row.is_fresh(self.version)
        }
        wanted &= self.first_fragments(wanted, options.get("num_frags"))
        expected = sorted(f"{self.now[id].text},{self.now[id].number}" for id in wanted)
        told = self.table.explain(self.branch, **options)
        self.check_states(told)
        done = self.table.fill(branch=self.branch, **options)
        calls = sorted(self.table.take_calls())
        assert calls == expected, self.steps
        assert told["function_calls"] == done.function_calls == len(expected), self.steps
        for id in wanted:
            row = self.now[id]
            row.value = compute(row.text, row.number, self.version)
            row.filled = (row.text, row.number, self.version)
        stale = sum(not row.is_fresh(self.version) for row in self.now.values())
        assert done.rows_left == told["rows_left"] == stale, self.steps
        self.check_states(msgspec.to_builtins(done))
        self.check()

    def check_states(self, told: dict[str, Any]) -> None:
        """The states of rows are all rows, and as far as a value tells, the right ones."""
        states, reasons = told["rows_by_state"], told["stale_by_reason"]
        rows = list(self.now.values())
        old = [row for row in rows if not row.is_fresh(self.version)]
        assert sum(states.values()) == len(rows), self.steps
        assert states["fresh"] == len(rows) - len(old), self.steps
        # A null may be somebody's value.
        assert states["unfilled"] <= sum(row.value is None for row in old), self.steps
        assert (states["failed"], sum(reasons.values())) == (0, states["stale"]), self.steps
        made = [row for row in old if row.filled and row.value == compute(*row.filled)]
        by_another = sum(row.filled[2] != self.version for row in made if row.filled)
        assert reasons["function_changed"] == by_another, self.steps

    def first_fragments(self, wanted: set[int], count: int | None) -> set[int]:
        if count is None:
            return wanted
        chosen: set[int] = set()
        for fragment in self.table.open(self.branch).get_fragments():
            ids = set(fragment.to_table(columns=["id"])["id"].to_pylist())
            if count and ids & wanted:
                chosen |= ids
                count -= 1
        return chosen

    def check(self) -> None:
        found = self.table.values(self.branch)
        assert found == {id: row.value for id, row in self.now.items()}, self.steps


def run_history(table: FunctionTable, seed: int, steps: int = 14) -> None:
    """Go through a history, and fill everything at its end, on main and on the branch."""
    history = History(table, seed)
    for _ in range(steps):
        history.step()
    for branch in history.rows:
        history.branch = branch
        history.fill()
        assert all(row.is_fresh(history.version) for row in history.now.values()), history.steps
        assert table.loose_files(branch) == set()
