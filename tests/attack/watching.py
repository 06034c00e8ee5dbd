"""What must not change while the server is attacked: its catalog, its files, its process."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from penstock.database.interface import Database
from penstock.model.identifiers import to_path
from tests.attack.place import MINE, PIT, SECRET, STORAGE_SECRET
from tests.attack.world import World

# Rows by what a client could change; not what the server notes by itself, nor the audit log.
ROWS = {
    "namespaces": "SELECT path, path, properties FROM namespaces",
    "objects": "SELECT namespace, name, id, kind, properties FROM objects",
    "tables": "SELECT o.namespace, o.name, absolute(t.location) FROM tables t "
    "JOIN objects o ON o.id = t.id",
    "versions": "SELECT o.namespace, o.name, v.branch, v.version FROM table_versions v "
    "JOIN objects o ON o.id = v.table_id",
    "views": "SELECT o.namespace, o.name, v.metadata_location FROM views v "
    "JOIN objects o ON o.id = v.id",
    "iceberg tables": "SELECT o.namespace, o.name, i.metadata_location FROM iceberg_tables i "
    "JOIN objects o ON o.id = i.id",
    "made views": "SELECT o.namespace, o.name, m.request, m.owner FROM materialized_views m "
    "JOIN objects o ON o.id = m.id",
    "columns": "SELECT o.namespace, o.name, c.name, c.expression FROM columns c "
    "JOIN objects o ON o.id = c.table_id",
    "jobs": "SELECT target, id, kind, state FROM jobs",
    "grants": "SELECT '', grantee, scope, target, role FROM grants WHERE target NOT IN "
    "(SELECT id FROM objects WHERE namespace LIKE $1) AND target NOT LIKE $1",
    # Those that have ended are removed by the server itself.
    "keys": "SELECT '', id, principal FROM tokens WHERE expires_at IS NULL AND revoked_at IS NULL",
    "manifests": "SELECT '', name, checksum FROM manifests",
    "signing": "SELECT '', id FROM signing_keys",
}
PIT_PATH = to_path((MINE, "pit"))
# The server's own files beside the lake.
OWN = re.compile(r"(catalog\.sqlite.*|audit\.jsonl|.*\.log)$")
MEGABYTES = 1024 * 1024
# What a server has while it answers what was asked here; a bomb that works needs far more.
MEMORY = 1_200 * MEGABYTES
GROWTH = 300 * MEGABYTES

State = frozenset[tuple[str, ...]]


def take(world: World) -> State:
    """Everything that must stay as it is: rows and files, but for what is in the pit."""
    found, in_pit = world.gate.work(_read_rows)
    return frozenset({*found, *_list_files(world, in_pit)})


def compare(before: State, after: State) -> list[str]:
    """What differs, in words."""
    gone = [f"gone: {' '.join(each)[:200]}" for each in sorted(before - after)]
    return gone + [f"new: {' '.join(each)[:200]}" for each in sorted(after - before)]


async def _read_rows(database: Database) -> tuple[set[tuple[str, ...]], list[str]]:
    found: set[tuple[str, ...]] = set()
    below = f"{PIT_PATH}%"
    for what, sql in ROWS.items():
        for row in await database.fetch(sql, *([below] if "$1" in sql else [])):
            if not str(row[0]).startswith((PIT_PATH, PIT)):
                found.add((what, *map(str, row)))
    places = await database.fetch(
        "SELECT absolute(t.location) FROM tables t JOIN objects o ON o.id = t.id "
        "WHERE o.namespace LIKE $1 "
        "UNION SELECT absolute(v.folder) FROM views v JOIN objects o ON o.id = v.id "
        "WHERE o.namespace LIKE $1 "
        "UNION SELECT absolute(v.location) FROM views v JOIN objects o ON o.id = v.id "
        "WHERE o.namespace LIKE $1 "
        "UNION SELECT absolute(i.location) FROM iceberg_tables i JOIN objects o ON o.id = i.id "
        "WHERE o.namespace LIKE $1 "
        "UNION SELECT absolute(i.folder) FROM iceberg_tables i JOIN objects o ON o.id = i.id "
        "WHERE o.namespace LIKE $1 "
        "UNION SELECT absolute(i.metadata_folder) FROM iceberg_tables i "
        "JOIN objects o ON o.id = i.id WHERE o.namespace LIKE $1 "
        "UNION SELECT absolute(location) FROM removals",
        below,
    )
    return found, [str(row[0]).removeprefix("file://") for row in places if row[0]]


def _list_files(world: World, in_pit: list[str]) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    base = Path(world.place.outside).parent
    for folder, _, names in os.walk(base):
        for name in names:
            path = os.path.join(folder, name)
            if not OWN.match(name) and not _is_below(path, in_pit):
                found.add(("file", path))
    for each in world.store.bucket.objects.all():
        path = f"s3://{each.bucket_name}/{each.key}"
        if not _is_below(path, in_pit):
            found.add(("object", path, str(each.size)))
    return found


def _is_below(path: str, folders: list[str]) -> bool:
    return any(path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


@dataclass(frozen=True)
class Health:
    """The process: the same one as before, and not much larger."""

    pid: int
    # What it may have taken at most; what others made it take is not told again.
    most: int

    def check(self, world: World) -> list[str]:
        wrong = []
        if world.server.process.pid != self.pid or not world.is_alive:
            return [f"the server is gone (exit code {world.server.process.poll()})"]
        if (size := _peak_bytes(self.pid)) > self.most:
            wrong.append(f"the server took {size // MEGABYTES} MB of memory")
        if Path(world.place.canary).exists():
            wrong.append("the canary is there: somebody ran what was sent")
        return wrong


def examine(world: World) -> Health:
    """How the server is before it is attacked."""
    pid = world.server.process.pid
    return Health(pid, max(MEMORY, _peak_bytes(pid) + GROWTH))


def check_output(world: World) -> list[str]:
    """What must not be in what the server printed."""
    world.output.append(world.server.output())
    text = "".join(world.output)
    world.output.clear()
    wrong = [f"a trace was printed: {found[-600:]}" for found in _traces(text)]
    secrets = (SECRET, STORAGE_SECRET, *filter(None, world.place.keys.values()))
    return wrong + [f"{secret[:12]}… was printed" for secret in secrets if secret in text]


def _traces(text: str) -> list[str]:
    pattern = r"Traceback \(most recent call last\).*?\n(?:\S+(?:Error|Exception)[^\n]*|\Z)"
    found: list[str] = re.findall(pattern, text, re.S)
    # A panic of Lance is answered as what the request did wrong, and told in the log on purpose.
    return [trace for trace in found if "PanicException" not in trace]


def _peak_bytes(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(found[1]) * 1024 if found else 0
