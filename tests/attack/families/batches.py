"""Requests about several things, of which the caller may have some and not others."""

import itertools
from collections.abc import Iterator
from typing import Any

from tests.attack.attack import REFUSED, Attack, Request, post
from tests.attack.families.routes import ICEBERG
from tests.attack.place import ABSENT, HIDDEN, MINE, PIT, THEIRS, Place

FAMILY = "batches"
# What changes a job.
CHANGES = ("cancel", "pause", "resume")
CALLERS = ("nobody", "reader", "writer", "owner", "clerk", "guest", "maker")


def make(place: Place) -> Iterator[Attack]:
    for who in CALLERS:
        yield from _commits(who)
        yield from _jobs(place, who)
        yield from _moves(who)
        yield from _grants(who)


def _operations(ns: str, table: str) -> dict[str, dict[str, Any]]:
    id = [*ns.split("$"), table]
    return {
        "declares": {"declare_table": {"id": [*ns.split("$"), "fresh"]}},
        "commits": {"create_table_version": {"id": id, "version": 9, "manifest_path": "x"}},
        "deletes": {
            "delete_table_versions": {
                "id": id,
                "ranges": [{"start_version": 1, "end_version": 2}],
            }
        },
        "deregisters": {"deregister_table": {"id": id}},
    }


def _commits(who: str) -> Iterator[Attack]:
    """One operation that is allowed, and one that is not, in both orders and thrice."""
    good = _operations(PIT, "t")["declares"]
    for ns in (THEIRS, HIDDEN):
        for what, bad in _operations(ns, "t").items():
            for order, operations in {
                "after": [good, bad],
                "before": [bad, good],
                "between": [good, bad, good],
                "alone": [bad],
                "in one": [{**good, **bad}] if what != "declares" else [bad, bad],
                "many": [good] * 20 + [bad],
            }.items():
                name = f"one that {what} {ns} {order}"
                request = post("/v1/table/batch-commit", {"operations": operations})
                like = None
                if ns == HIDDEN:
                    other = request.body.replace(HIDDEN.encode(), ABSENT.encode())
                    like = Request("POST", request.path, other)
                yield Attack(FAMILY, name, who, request, REFUSED, like=like, names=(HIDDEN, ABSENT))
        entry = {"id": [ns, "t"], "version": 9, "manifest_path": "x"}
        own = {"id": [*PIT.split("$"), "t"], "version": 9, "manifest_path": "x"}
        for order, entries in {"after": [own, entry], "before": [entry, own]}.items():
            request = post("/v1/table/version/batch-create", {"entries": entries})
            yield Attack(FAMILY, f"a version of {ns} {order}", who, request, REFUSED)


def _jobs(place: Place, who: str) -> Iterator[Attack]:
    hidden, mine, absent = (place.jobs[ns] for ns in (HIDDEN, MINE, ABSENT))
    for ids in itertools.permutations((hidden, mine, absent), 2):
        if hidden not in ids:
            continue
        request = post("/v1/jobs/query_events", {"job_ids": list(ids)})
        yield Attack(FAMILY, f"events of {len(ids)} jobs", who, request, REFUSED)
    for body in ({"job_id": mine, "job_ids": [hidden]}, {"job_id": hidden, "job_ids": [mine]}):
        for verb in ("query_events", "describe", *CHANGES):
            never = (f"{HIDDEN}$t", hidden) if body["job_id"] == mine else ()
            name = f"{verb} with two fields, {'mine' if never else 'hidden'} first"
            may = REFUSED if not never or verb in CHANGES else Attack.may
            if who in ("writer", "owner", "clerk", "maker") and verb in CHANGES and never:
                continue
            yield Attack(
                FAMILY, name, who, post(f"/v1/jobs/{verb}", body), may, never=(f"{HIDDEN}$t",)
            )
    for field in ("target", "table_name"):
        body = {field: f"{HIDDEN}$t"}
        yield Attack(FAMILY, f"jobs by {field}", who, post("/v1/jobs/list", body), never=(hidden,))


def _moves(who: str) -> Iterator[Attack]:
    for source, destination in itertools.product((PIT, THEIRS, HIDDEN), (THEIRS, HIDDEN, "")):
        to = [destination] if destination else []
        body: dict[str, Any] = {"new_table_name": "moved", "new_namespace_id": to}
        path = f"/v1/table/{source}$t/rename"
        name = f"a table from {source} to {destination or 'the root'}"
        yield Attack(FAMILY, name, who, post(path, body), REFUSED)
        body = {
            "source": {"namespace": source.split("$"), "name": "v"},
            "destination": {"namespace": to, "name": "moved"},
        }
        name = f"a view from {source} to {destination or 'the root'}"
        yield Attack(FAMILY, name, who, post(f"{ICEBERG}/views/rename", body), REFUSED)


def _grants(who: str) -> Iterator[Attack]:
    """Roles on what is not the caller's, and more than the caller has."""
    targets: list[dict[str, Any]] = [
        {"catalog": True},
        {"namespace": [HIDDEN]},
        {"namespace": [THEIRS]},
        {"table": [HIDDEN, "t"]},
        {"table": [THEIRS, "t"]},
        {"view": [HIDDEN, "v"]},
        {"namespace": [MINE], "catalog": True},
        {"namespace": []},
        {"namespace": [MINE], "table": [HIDDEN, "t"]},
        {"catalog": True, "namespace": []},
    ]
    for target, role, grantee in itertools.product(
        targets, ("reader", "owner", "functions"), (f"the-{who}", "group:all")
    ):
        for verb in ("create", "revoke"):
            body = {**target, "principal": grantee, "role": role}
            name = f"{verb} {role} on {target} of {grantee}"
            yield Attack(FAMILY, name, who, post(f"/v1/grants/{verb}", body), REFUSED)
    if who != "maker":
        for kind in ({"namespace": [MINE]}, {"table": [MINE, "t"]}, {"view": [MINE, "v"]}):
            body = {**kind, "principal": f"the-{who}", "role": "functions"}
            name = f"the right to code on {kind}"
            yield Attack(FAMILY, name, who, post("/v1/grants/create", body), REFUSED)
