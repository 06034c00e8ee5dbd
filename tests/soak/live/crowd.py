"""Writers and readers of a soak, each a client of its own that goes on whatever dies.

A writer owns its rows. It repeats a change under its key until it is answered, so that it knows
exactly which rows must be there.
"""

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pyarrow as pa

from tests.harness.clients.idempotency_keys import HEADER
from tests.harness.data.arrow import HEADERS, to_stream

OWN = 1_000_000
MAX_ROWS = 60
TIMEOUT_SECONDS = 60
# What a client is told to try again: a lost race, a server that is busy, or away behind a proxy.
AGAIN = (409, 429, 503)
PAUSE_SECONDS = 0.2
KINDS = 4


@dataclass
class Tally:
    """What clients did, and what went wrong in their eyes; shared by all of them."""

    counts: Counter[str] = field(default_factory=Counter)
    # Explained: the server was killed, or asked for another try.
    retries: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)


class Client(threading.Thread):
    """One of the crowd; it acts until it is told to stop."""

    def __init__(self, url: str, table: str, seed: int, tally: Tally) -> None:
        super().__init__(daemon=True)
        self.table = table
        self.tally = tally
        self.chance = random.Random(seed)
        self.stopping = threading.Event()
        # Held while it acts: whoever takes it has it pause.
        self.acting = threading.Lock()
        self._http = httpx.Client(base_url=url, timeout=TIMEOUT_SECONDS, trust_env=False)

    def run(self) -> None:
        while not self.stopping.wait(self.chance.uniform(0.1, 1.0)):
            try:
                with self.acting:
                    self.act()
            # A client that stops for a bug of its own would be missed; it is told instead.
            except Exception as error:
                self.tally.failures[f"{type(self).__name__}: {type(error).__name__}: {error}"] += 1

    def act(self) -> None:
        raise NotImplementedError

    def ask(
        self,
        path: str,
        body: Any = None,
        content: bytes | None = None,
        params: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """POST until it is answered, under one key for all tries that may be the same change."""
        key = str(uuid.uuid4())
        while True:
            headers = {HEADER: key} | (HEADERS if content is not None else {})
            try:
                answer = self._http.post(
                    path, json=body, content=content, headers=headers, params=params
                )
            except httpx.TransportError as error:
                self.tally.retries[type(error).__name__] += 1
            else:
                if answer.status_code not in AGAIN:
                    return answer
                self.tally.retries[f"{answer.status_code} {_reason(answer)}"] += 1
                key = str(uuid.uuid4())
            time.sleep(PAUSE_SECONDS)

    def expect(self, what: str, answer: httpx.Response) -> bool:
        if answer.status_code == 200:
            self.tally.counts[what] += 1
            return True
        self.tally.failures[f"{what}: {answer.status_code} {_reason(answer)}"] += 1
        return False


def _reason(answer: httpx.Response) -> str:
    try:
        return str(answer.json().get("error", ""))[:120]
    except ValueError:
        return answer.text[:120]


class Writer(Client):
    """Appends, updates, merges and deletes its own rows, some dozens of them."""

    def __init__(self, url: str, table: str, number: int, tally: Tally) -> None:
        super().__init__(url, table, number, tally)
        self.rows: dict[int, dict[str, Any]] = {}
        self._next = (number + 1) * OWN
        self._end = (number + 2) * OWN
        self._mine = f"id >= {self._next} AND id < {self._end}"

    def act(self) -> None:
        if len(self.rows) < 5:
            action = "append"
        elif len(self.rows) > MAX_ROWS:
            action = "delete"
        else:
            action = self.chance.choice(["append", "update_text", "update_x", "merge", "delete"])
        getattr(self, f"_{action}")()

    def _append(self) -> None:
        rows = [self._make(self._next + n) for n in range(self.chance.randrange(1, 9))]
        self._next += len(rows)
        path = f"/v1/table/{self.table}/insert"
        if self.expect("append", self.ask(path, content=to_stream(_to_arrow(rows)))):
            self.rows |= {row["id"]: row for row in rows}

    def _make(self, id: int) -> dict[str, Any]:
        text = " ".join(f"n{self.chance.randrange(9)}" for _ in range(id % 3 + 1))
        return {"id": id, "text": text, "x": id % 7, "kind": f"k{id % KINDS}", "part": id // 2}

    def _update_text(self) -> None:
        text = self.chance.choice(["u v", "w", "a b c"])
        self._update("text", f"'{text}'", lambda _: text)

    def _update_x(self) -> None:
        # A column that only filters read.
        self._update("x", "x + 5", lambda x: x + 5)

    def _update(self, column: str, sql: str, change: Callable[[Any], Any]) -> None:
        rest = self.chance.randrange(7)
        body = {"updates": [[column, sql]], "predicate": f"{self._mine} AND id % 7 = {rest}"}
        if self.expect("update", self.ask(f"/v1/table/{self.table}/update", body)):
            for row in self.rows.values():
                if row["id"] % 7 == rest:
                    row[column] = change(row[column])

    def _merge(self) -> None:
        ids = [*self.chance.sample(sorted(self.rows), 3), self._next]
        self._next += 1
        rows = [self._make(id) for id in ids]
        params = {
            "on": "id",
            "when_matched_update_all": "true",
            "when_not_matched_insert_all": "true",
        }
        path = f"/v1/table/{self.table}/merge_insert"
        answer = self.ask(path, content=to_stream(_to_arrow(rows)), params=params)
        if self.expect("merge", answer):
            self.rows |= {row["id"]: row for row in rows}

    def _delete(self) -> None:
        modulus, rest = 5, self.chance.randrange(5)
        body = {"predicate": f"{self._mine} AND id % {modulus} = {rest}"}
        if self.expect("delete", self.ask(f"/v1/table/{self.table}/delete", body)):
            self.rows = {id: row for id, row in self.rows.items() if id % modulus != rest}


class Reader(Client):
    """Counts and queries the source and views, as they are just then."""

    def __init__(self, url: str, tables: list[str], number: int, tally: Tally) -> None:
        super().__init__(url, tables[0], 1000 + number, tally)
        self._tables = tables

    def act(self) -> None:
        table = self.chance.choice(self._tables)
        if self.chance.random() < 0.5:
            self.expect("count", self.ask(f"/v1/table/{table}/count_rows"))
        else:
            body = {"k": 50, "vector": []}
            self.expect("query", self.ask(f"/v1/table/{table}/query", body))


def _to_arrow(rows: list[dict[str, Any]]) -> pa.Table:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("text", pa.string()),
            ("x", pa.int64()),
            ("kind", pa.string()),
            ("part", pa.int64()),
        ]
    )
    return pa.Table.from_pylist(rows, schema=schema)
