"""Requests that are sent again: after a refusal for now, and after an answer that got lost."""

import itertools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import TooManyRequests, Unavailable
from penstock.model.codes import LANCE_ERRORS
from penstock.sdk.connection.wire import _CLASSES
from tests.harness.processes.flaky_proxy import flaky
from tests.harness.processes.servers import Server


def test_a_change_whose_answer_is_lost_happens_once(server: Server, space: str) -> None:
    with flaky(server.url) as way, penstock.connect(way.url) as lake:
        way.only_changes = True
        way.fates = ["lose"]
        made = lake.create_table(f"{space}.t", {"id": [1]})
        changes: list[Callable[[], Any]] = [
            lambda: made.append([{"id": 2}]),
            lambda: made.update(values_sql={"id": "id + 1"}),
            lambda: made.delete("id = 2"),
        ]
        for change in changes:
            version = made.version()
            way.seen.clear()
            way.fates = ["lose", "503"]
            change()
            assert made.version() == version + 1
            keys = [key for key in way.list_keys() if key]
            assert len(keys) == 3
            assert len(set(keys)) == 1
        assert made.to_list() == [{"id": 3}]


def test_a_long_upload_is_sent_again(server: Server, space: str) -> None:
    rows = pa.table({"id": pa.array(range(700_000), pa.int64())})
    with flaky(server.url) as way, penstock.connect(way.url) as lake:
        way.fates = ["pass", "lose", "lose"]
        way.only_changes = True
        made = lake.create_table(f"{space}.t", rows.slice(0, 1))
        made.append(rows)
        assert (len(made), made.version()) == (700_001, 2)
        assert len(set(way.list_keys()) - {None}) == 2


def test_a_server_that_has_enough_to_do_is_asked_again_when_it_says(
    server: Server, space: str
) -> None:
    with flaky(server.url, retry_after="1") as way, penstock.connect(way.url) as lake:
        way.seen.clear()
        way.fates = ["429", "503"]
        lake.namespaces()
        times = [at for _, _, at in way.seen]
        assert len(times) == 3
        assert all(later - sooner >= 1 for sooner, later in itertools.pairwise(times))


def test_patience_has_an_end(server: Server) -> None:
    with flaky(server.url, retry_after="3600") as way:
        with penstock.connect(way.url) as lake:
            way.fates = ["429"]
            with pytest.raises(TooManyRequests):
                lake.namespaces()
        with penstock.connect(way.url, retry_seconds=0) as lake:
            way.fates = ["503"]
            with pytest.raises(Unavailable):
                lake.namespaces()


def test_every_error_of_the_server_comes_back_as_its_class() -> None:
    for kind, numbers in LANCE_ERRORS.items():
        assert issubclass(kind, _CLASSES[numbers])
    alone = [kind for kind, n in LANCE_ERRORS.items() if list(LANCE_ERRORS.values()).count(n) == 1]
    assert all(_CLASSES[LANCE_ERRORS[kind]] is kind for kind in alone)
    assert len(alone) == len(LANCE_ERRORS) - 4
