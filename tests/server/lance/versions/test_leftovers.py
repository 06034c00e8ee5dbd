"""Staged manifests that never became a version are collected, and nothing else is."""

import os
import time
from pathlib import Path

from tests.harness.data.tables import declare
from tests.harness.processes.servers import running
from tests.harness.processes.waiting import until

HOUR = {"PENSTOCK__CATALOG__STAGED_SECONDS": "3600"}
# Time enough between staging and committing on a busy machine.
EAGER = {"PENSTOCK__CATALOG__STAGED_SECONDS": "4", "PENSTOCK__CATALOG__MAINTAIN_SECONDS": "1"}


def test_an_old_staged_manifest_is_collected_in_the_background(tmp_path: Path) -> None:
    with running(tmp_path, environ=EAGER) as server:
        table = declare(server, "t")
        orphan = Path("/" + table.stage(2))
        table.commit(1)
        until(lambda: not orphan.exists())
        assert table.file(1).exists()
        assert table.listed() == [1]


def test_a_listing_collects_too_and_spares_what_is_young(tmp_path: Path) -> None:
    with running(tmp_path, environ=HOUR) as server:
        table = declare(server, "t")
        table.commit(1)
        old, young = Path("/" + table.stage(2)), Path("/" + table.stage(2))
        two_hours_ago = time.time() - 7200
        os.utime(old, (two_hours_ago, two_hours_ago))
        os.utime(table.file(1), (two_hours_ago, two_hours_ago))
        assert table.listed() == [1]
        assert not old.exists()
        assert young.exists()
        assert table.file(1).exists()
