"""Changes of Iceberg tables that reach for more than the caller's own."""

from collections.abc import Iterator
from typing import Any

from tests.attack.attack import REFUSED, Attack, Request, post
from tests.attack.families.routes import ICEBERG
from tests.attack.place import ABSENT, CALLERS, HIDDEN, MINE, PIT, THEIRS, Place
from tests.harness.clients import iceberg_tables as tables

FAMILY = "iceberg tables"
WHO = tuple(name for name, caller in CALLERS.items() if caller.is_known and not caller.is_runner)
SET = {"action": "set-properties", "updates": {"a": "b"}}
CREATE = {"type": "assert-create"}


def make(place: Place) -> Iterator[Attack]:
    for who in WHO:
        for ns in (THEIRS, HIDDEN):
            yield from _transactions(who, ns)
            yield from _renames(who, ns)
            yield from _files(place, who, ns)
        yield from _paths(who)


def _name(ns: str, name: str = "i") -> dict[str, Any]:
    return {"namespace": ns.split("$"), "name": name}


def _change(ns: str, name: str = "i", *, creates: bool = False) -> dict[str, Any]:
    requires = [CREATE] if creates else []
    return {"identifier": _name(ns, name), "requirements": requires, "updates": [SET]}


def _attack(what: str, who: str, ns: str, request: Request) -> Attack:
    """What is hidden must look as if it did not exist."""
    like = None
    if ns == HIDDEN:
        other = request.body.replace(HIDDEN.encode(), ABSENT.encode())
        like = Request("POST", request.path, other)
    return Attack(FAMILY, f"{what} {ns}", who, request, REFUSED, like=like, names=(HIDDEN, ABSENT))


def _transactions(who: str, ns: str) -> Iterator[Attack]:
    own, other = _change(PIT), _change(ns)
    for what, changes in {
        "alone of": [other],
        "before that of": [own, other],
        "after that of": [other, own],
        "around that of": [own, other, _change(PIT, "j")],
        "twice of": [other, other],
        "that makes one beside": [_change(ns, "new", creates=True)],
        "that makes one over": [own, _change(ns, creates=True)],
        "of a Lance table of": [own, _change(ns, "t")],
    }.items():
        request = post(f"{ICEBERG}/transactions/commit", {"table-changes": changes})
        yield _attack(f"a change {what}", who, ns, request)
    # The same field twice: what is asked for rights must be what is changed.
    for first, second in ((PIT, ns), (ns, PIT)):
        twice = b'{"table-changes": [{"identifier": %s, "identifier": %s, "updates": [{}]}]}' % (
            post("", _name(first)).body,
            post("", _name(second)).body,
        )
        request = Request("POST", f"{ICEBERG}/transactions/commit", twice)
        yield Attack(FAMILY, f"{first}, then {second}", who, request, REFUSED)


def _renames(who: str, ns: str) -> Iterator[Attack]:
    for what, source, target in (
        ("into", _name(PIT), _name(ns, "x")),
        ("over that of", _name(PIT), _name(ns)),
        ("over a Lance table of", _name(PIT), _name(ns, "t")),
        ("out of", _name(ns), _name(PIT, "x")),
        ("as an Iceberg table a table of", _name(ns, "t"), _name(PIT, "x")),
    ):
        body = {"source": source, "destination": target}
        yield _attack(f"a rename {what}", who, ns, post(f"{ICEBERG}/tables/rename", body))


def _files(place: Place, who: str, ns: str) -> Iterator[Attack]:
    """Another's metadata file, and files of other kinds, registered as one's own table."""
    if ns != HIDDEN and who == "owner":
        return  # who may read a table may look at its file
    pit = f"{ICEBERG}/namespaces/{PIT.replace('$', '%1F')}"
    file = place.metadata[ns]
    for what, location in {
        "its file": file,
        "its file by a path": file.removeprefix("file://"),
        "its file by one slash": file.replace("file:///", "file:/"),
        "its file and a slash": f"{file}/",
        "its folder": file.rpartition("/")[0],
        "a file of its Lance table": f"{place.table(ns)}/_versions/1.manifest",
        "a file beside the lake": f"{place.outside}/note",
        "the lake's mark": f"{place.root}/_penstock.json",
        "a result": f"{place.root}/_results/x.metadata.json",
    }.items():
        for overwrite in (False, True):
            body = {"name": "i" if overwrite else "n", "metadata-location": location}
            request = post(f"{pit}/register", {**body, "overwrite": overwrite})
            # Who has it is not told: the words for that are `namespace$table`.
            never = (f"{ns}$",) if ns == HIDDEN else ()
            name = f"{what}, {'over one' if overwrite else 'as one'} of mine: {ns}"
            yield Attack(FAMILY, name, who, request, REFUSED, never=never)


def _paths(who: str) -> Iterator[Attack]:
    """A body that is about another table than the path."""
    path = tables.path(PIT.replace("$", "%1F"), "i")
    for ns in (MINE, THEIRS, HIDDEN):
        request = post(path, _change(ns))
        yield Attack(FAMILY, f"a commit to the pit of {ns}", who, request, REFUSED)
        request = post(path, {**_change(ns), "requirements": [CREATE]})
        yield Attack(FAMILY, f"a creation in the pit of {ns}", who, request, REFUSED)
