"""What is attacked, as plain data: the names of a small catalog, who there is, and what is where.

Generators know nothing else, so that they can be counted without a server.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from penstock.model.rights import FUNCTIONS, OWN, READ, WRITE
from tests.harness.processes.access import Issuer

# Namespaces, of one length: the attackers', one that they may read, one that they may not see,
# and one that is not there. Each that is there holds a table `t`, an Iceberg table `i`, a view `v`
# and a view `m` with rows. `pit` is below `mine`: what attackers break there is theirs.
MINE, THEIRS, HIDDEN, ABSENT = "mine", "them", "veil", "gone"
PIT = f"{MINE}$pit"
# What nobody but an owner of the catalog may ever be told.
SECRET = "canary5e1f3b7c"
# What the server knows of its storage and must not tell.
STORAGE_SECRET = "the-secret"

ALL = READ | WRITE | OWN


@dataclass(frozen=True)
class Caller:
    """Somebody with credentials: the rights on `mine` (all of it), and where they begin."""

    rights: int
    # What the rights are on: the namespace, its table `t`, or its view `v`.
    on: str = "namespace"
    # Somebody whom the server must not know at all.
    is_known: bool = True
    is_runner: bool = False


CALLERS: Mapping[str, Caller] = {
    "": Caller(0, is_known=False),
    "wrong": Caller(0, is_known=False),
    "revoked": Caller(ALL, is_known=False),
    "expired": Caller(ALL, is_known=False),
    "nobody": Caller(0),
    "coder": Caller(FUNCTIONS),
    "reader": Caller(READ),
    "writer": Caller(READ | WRITE),
    "owner": Caller(ALL),
    "clerk": Caller(READ | WRITE, "table"),
    "viewer": Caller(READ, "view"),
    "guest": Caller(READ),
    "maker": Caller(ALL | FUNCTIONS),
    "runner": Caller(0, is_runner=True),
}
# Who attacks what is there for all: somebody who owns `mine`, and has no right to bring code.
OWNER = "owner"


@dataclass(frozen=True)
class Place:
    """What the world has beside its names."""

    # Jobs, by the namespace that they are of.
    jobs: Mapping[str, str]
    # Where the tables `t` lie, by namespace; and the roots.
    tables: Mapping[str, str]
    # The metadata files of the Iceberg tables `i`, by namespace.
    metadata: Mapping[str, str]
    root: str
    remote_root: str
    # A folder beside the lake, which nobody may reach; its file `note` holds the secret.
    outside: str
    # A file that is only there when somebody ran what they were sent.
    canary: str
    issuer: Issuer
    # Keys of callers, as they are sent.
    keys: Mapping[str, str] = field(default_factory=dict)

    def table(self, namespace: str) -> str:
        return self.tables[namespace]

    def iceberg_table(self, namespace: str) -> str:
        """Where an Iceberg table is."""
        return self.metadata[namespace].partition("/metadata/")[0].removeprefix("file://")


@cache
def imagined() -> Place:
    """A place without a server, to count what would be sent to it."""
    issuer = Issuer("http://127.0.0.1:1")
    issuer.add_key("one")
    everywhere = (MINE, THEIRS, HIDDEN, ABSENT)
    return Place(
        jobs={ns: f"job-of-{ns}" for ns in everywhere},
        tables={ns: f"/lake/{ns}.lance" for ns in everywhere},
        metadata={ns: f"file:///lake/{ns}.iceberg/metadata/0.json" for ns in everywhere},
        root="/lake",
        remote_root="s3://bucket/lake",
        outside="/outside",
        canary="/canary",
        issuer=issuer,
        keys={name: f"key-of-{name}" for name in CALLERS},
    )
