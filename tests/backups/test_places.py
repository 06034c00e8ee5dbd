"""Backups of lakes elsewhere: on S3, in several roots, and with views that name their places."""

import json
from pathlib import Path
from typing import Any

import lance
import pytest

from tests.harness.clients.iceberg import Iceberg
from tests.harness.clients.iceberg_views import create_body
from tests.harness.data.arrow import people, send
from tests.harness.data.backups import NAMESPACE, fill, look_deep, run
from tests.harness.processes import servers
from tests.harness.processes.s3 import BUCKET, Store, running_store, serving


def configure(store: Store, data: Path, root: str) -> list[str]:
    """The arguments that name a lake on a store."""
    data.mkdir(exist_ok=True)
    options = "\n".join(f'{name} = "{value}"' for name, value in store.options.items())
    config = data / "penstock.toml"
    config.write_text(f'[storage]\nroot = "s3://{BUCKET}/{root}"\n\n[storage.options]\n{options}\n')
    return ["--config", str(config), "--data", str(data)]


def test_a_lake_on_s3_is_backed_up_to_s3_and_restored_there(tmp_path: Path) -> None:
    with running_store() as store:
        for name in ("old", "new"):
            configure(store, tmp_path / name, name)
        with serving(store, tmp_path / "old", "old") as server:
            table = f"/v1/table/{NAMESPACE}$t"
            server.post(f"/v1/namespace/{NAMESPACE}/create").raise_for_status()
            send(server, f"{table}/create", people(1, 2)).raise_for_status()
            server.post(f"{table}/branches/create", {"name": "dev"}).raise_for_status()
            send(server, f"{table}/insert", people(3), branch="dev").raise_for_status()
            run("backup", f"s3://{BUCKET}/backup", *configure(store, tmp_path / "old", "old"))
        new = configure(store, tmp_path / "new", "new")
        run("restore", f"s3://{BUCKET}/backup", *new)
        store.bucket.objects.filter(Prefix="old/").delete()
        assert look_deep(*new)[0].endswith("everything is there")
        with serving(store, tmp_path / "new", "new") as server:
            location = server.post(f"{table}/describe").json()["location"]
            assert location.startswith(f"s3://{BUCKET}/new/")
            dataset = lance.dataset(location, storage_options=store.options)
            assert dataset.checkout_version(("dev", None)).count_rows() == 3
        assert store.keys("old/") == []


@pytest.fixture
def spread(tmp_path: Path) -> Any:
    """A server's data folder and configuration, with a second root that tables may lie in."""
    config = tmp_path / "penstock.toml"
    config.write_text(f'[storage]\nallowed_roots = ["{tmp_path / "second"}"]\n')
    with servers.running(tmp_path / "old", "--config", str(config)) as server:
        yield server, tmp_path, ["--config", str(config)]


def test_what_lies_in_other_roots_comes_into_the_restored_lake(spread: Any) -> None:
    server, folder, config = spread
    lance.write_dataset(people(1, 2), folder / "second" / "t.lance")
    server.post(f"/v1/namespace/{NAMESPACE}/create").raise_for_status()
    body = {"location": str(folder / "second" / "t.lance")}
    server.post(f"/v1/table/{NAMESPACE}$t/register", body).raise_for_status()
    iceberg, views = Iceberg(server), f"namespaces/{NAMESPACE}/views"
    iceberg.post(views, create_body("far", location=f"file://{folder}/second/far")).ok()
    run("backup", folder / "backup", "--data", folder / "old", *config)
    run("restore", folder / "backup", "--data", folder / "new")
    assert look_deep("--data", folder / "new")[0].endswith("everything is there")
    with servers.running(folder / "new") as restored:
        location = restored.post(f"/v1/table/{NAMESPACE}$t/describe").json()["location"]
        far = Iceberg(restored).get(f"{views}/far").ok()
    assert Path(location).parent == folder / "new" / "lake"
    assert lance.dataset(location).count_rows() == 2
    assert far["metadata"]["location"].startswith(f"file://{folder}/new/lake/")


def test_a_version_that_cannot_be_read_is_not_in_the_backup_and_is_told(tmp_path: Path) -> None:
    with servers.running(tmp_path / "old") as server:
        fill(server)
        newest = sorted((tmp_path / "old" / "lake").glob("*people*/_versions/*.manifest"))[0]
        newest.write_bytes(newest.read_bytes()[:40])
        said = run("backup", tmp_path / "backup", "--data", tmp_path / "old", code=1)
    lost = [each for each in said["left_out"] if each["is_newest"]]
    assert [each["table"] for each in lost] == [f"{NAMESPACE}$people"]
    run("restore", tmp_path / "backup", "--data", tmp_path / "new")
    assert look_deep("--data", tmp_path / "new")[0].endswith("everything is there")


def test_namespaces_and_answers_name_the_new_lake(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    with servers.running(old) as server:
        iceberg = Iceberg(server)
        made = iceberg.new_namespace(NAMESPACE, location=f"file://{old}/lake/here")
        key = {"Idempotency-Key": "00000000-0000-7000-8000-000000000001"}
        first = iceberg.ask("POST", f"{made.path}/views", create_body("v"), key).ok()
        run("backup", tmp_path / "backup", "--data", old)
    run("restore", tmp_path / "backup", "--data", new)
    with servers.running(new) as server:
        iceberg = Iceberg(server)
        again = iceberg.ask("POST", f"{made.path}/views", create_body("v"), key).ok()
        other = iceberg.post(f"{made.path}/views", create_body("w")).ok()
    assert first["metadata"]["location"].startswith(f"file://{old}/lake/here/")
    assert str(old) not in json.dumps([again, other])
    assert other["metadata"]["location"].startswith(f"file://{new}/lake/here/")
