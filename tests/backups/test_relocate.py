"""`penstock relocate`: a lake that was moved by hand, and `doctor --deep`, which misses nothing."""

import shutil
from pathlib import Path

import pytest

from tests.harness.clients.iceberg import Iceberg
from tests.harness.data.arrow import people, send
from tests.harness.data.backups import NAMESPACE, fill, look_deep, read_all, run
from tests.harness.processes import servers
from tests.harness.processes.databases import EITHER, database_of


@pytest.fixture(scope="module", params=EITHER)
def moved(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[str]]:
    """A data folder after it was moved, and the arguments that name its database."""
    folder, database = tmp_path_factory.mktemp("moved"), database_of(request)
    more = ["--database", database] if database else []
    with servers.running(folder / "old", database=database) as server:
        fill(server)
        if database:
            said = run("relocate", "--data", folder / "new", *more, code=2)
            assert "stop its servers" in said
    shutil.move(folder / "old", folder / "new")
    return folder / "new", more


def test_a_moved_lake_is_found_once_the_catalog_is_told(moved: tuple[Path, list[str]]) -> None:
    data, more = moved
    database = more[1] if more else ""
    with pytest.raises(AssertionError, match="penstock relocate"):
        servers.start(data, database=database)
    assert run("relocate", "--data", data, *more)["views"] == 1
    # Again, there is nothing to do.
    assert run("relocate", "--data", data, *more)["views"] == 0
    assert look_deep("--data", data, *more)[0].endswith("everything is there")
    with servers.running(data, database=database) as server:
        path = f"/v1/table/{NAMESPACE}$people/insert"
        send(server, path, people(7_001), branch="dev").raise_for_status()
        found = read_all(server)
        assert (
            max(t.num_rows for (n, b, _), t in found.items() if (n, b) == ("people", "dev")) == 12
        )
        loaded = Iceberg(server).get(f"namespaces/{NAMESPACE}/views/seen").ok()
        assert loaded["metadata"]["location"].startswith(f"file://{data}/lake/")


def test_what_is_missing_is_named(moved: tuple[Path, list[str]]) -> None:
    data, more = moved
    run("relocate", "--data", data, *more)
    file = next((data / "lake").glob("*orders*/data/*.lance"))
    content = file.read_bytes()
    file.unlink()
    assert any(file.name in line for line in look_deep("--data", data, *more, code=1)[1:])
    file.write_bytes(content[:-1])
    found = look_deep("--data", data, *more, code=1)
    assert any(f"{file.name} is cut short or damaged" in line for line in found[1:])
    file.write_bytes(content)
    view = next((data / "lake").glob("*seen*/metadata/00001-*"))
    view.unlink()
    assert any("view shop" in line for line in look_deep("--data", data, *more, code=1)[1:])


def test_a_place_without_the_lake_is_refused(moved: tuple[Path, list[str]]) -> None:
    data, more = moved
    given = more or ["--database", f"sqlite:///{data / 'catalog.sqlite'}"]
    said = run("relocate", "--data", data.parent / "nowhere", *given, code=2)
    assert "tables are not at" in said
