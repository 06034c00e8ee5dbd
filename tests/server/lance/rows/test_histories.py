"""Random histories of writes through the API give the rows that the same steps give in Python."""

from typing import Any

import lance
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.data.arrow import people, read_back, send
from tests.harness.fuzzing.values import fuzzed
from tests.harness.processes.servers import Server

BOTH = {"when_matched_update_all": "true", "when_not_matched_insert_all": "true"}
MAIN, DEV = "main", "dev"

keys = st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True)
steps = st.lists(
    st.tuples(
        st.sampled_from(["insert", "merge", "update", "delete", "overwrite"]),
        st.sampled_from([MAIN, DEV]),
        keys,
        st.sampled_from("abc"),
    ),
    max_size=8,
)
Rows = dict[int, str]


def apply(rows: Rows, kind: str, ids: list[int], letter: str) -> Rows:
    """What a step does to rows that are known by their id."""
    new = {i: f"{letter}{i}" for i in ids}
    match kind:
        case "insert" | "merge":
            return rows | new
        case "update":
            return {i: (letter if i in new else name) for i, name in rows.items()}
        case "delete":
            return {i: name for i, name in rows.items() if i not in new}
        case _:
            return new


def do(
    server: Server, table: str, kind: str, branch: str, ids: list[int], letter: str, rows: Rows
) -> None:
    """The same step through the API; an insert only brings ids that are not there yet."""
    path, where = f"/v1/table/{table}", ",".join(map(str, ids))
    match kind:
        case "insert":
            fresh = [i for i in ids if i not in rows]
            known = [i for i in ids if i in rows]
            if fresh:
                send(server, f"{path}/insert", people(*fresh, name=letter), branch=branch)
            if known:
                do(server, table, "merge", branch, known, letter, rows)
        case "merge":
            body = people(*ids, name=letter)
            send(server, f"{path}/merge_insert", body, on="id", branch=branch, **BOTH)
        case "update":
            change: dict[str, Any] = {"updates": [["name", f"'{letter}'"]], "branch": branch}
            server.post(f"{path}/update", change | {"predicate": f"id IN ({where})"})
        case "delete":
            server.post(f"{path}/delete", {"predicate": f"id IN ({where})", "branch": branch})
        case _:
            body = people(*ids, name=letter)
            send(server, f"{path}/insert", body, branch=branch, mode="overwrite")


@fuzzed(12)
@given(history=steps)
def test_a_history_on_main_and_on_a_branch_keeps_both_right(
    server: Server, namespace: str, history: list[tuple[str, str, list[int], str]]
) -> None:
    table = f"{namespace}$t{abs(hash(str(history)))}"
    made = send(server, f"/v1/table/{table}/create", people(0, 1), mode="overwrite").json()
    dataset = lance.dataset(made["location"])
    if DEV in dataset.branches.list():
        dataset.branches.delete(DEV)
    dataset.create_branch(DEV)
    expected: dict[str, Rows] = {name: {0: "n0", 1: "n1"} for name in (MAIN, DEV)}
    for kind, branch, ids, letter in history:
        do(server, table, kind, branch, ids, letter, expected[branch])
        expected[branch] = apply(expected[branch], kind, ids, letter)
    for branch, rows in expected.items():
        found = read_back(server, table, None if branch == MAIN else branch)
        assert {row["id"]: row["name"] for row in found} == rows
        assert len(found) == len(rows)
