"""Grants over HTTP: give a role, take it back, list who has which."""

from dataclasses import dataclass

import msgspec

from penstock.catalog.access import grants
from penstock.catalog.access.grants import CATALOG, Grant, Target
from penstock.errors import InvalidRequest
from penstock.model.identifiers import check_identifier
from penstock.model.rights import KINDS, check_role
from penstock.server.lance.call import Body, Call, Text


class GrantTarget(Body, forbid_unknown_fields=True):
    """At most one of these. Unknown fields are refused: a typo must not widen the target."""

    namespace: list[str] | None = None
    table: list[str] | None = None
    view: list[str] | None = None
    function: list[str] | None = None
    catalog: bool | None = None


class ChangeGrant(GrantTarget, kw_only=True):
    principal: Text
    role: str


class ListGrants(GrantTarget, kw_only=True):
    principal: Text | None = None


class ListedGrant(msgspec.Struct, omit_defaults=True):
    principal: str
    role: str
    created_at: int
    created_by: str
    namespace: list[str] | None = None
    table: list[str] | None = None
    view: list[str] | None = None
    function: list[str] | None = None
    catalog: bool = False


class Grants(msgspec.Struct, omit_defaults=True):
    grants: list[ListedGrant]
    page_token: str | None = None


class ChangedGrant(msgspec.Struct):
    transaction_id: str


@dataclass(frozen=True, slots=True)
class GrantChange:
    grantee: str
    role: str
    target: Target


_change = msgspec.json.Decoder(ChangeGrant)
_list = msgspec.json.Decoder(ListGrants)


async def create(call: Call) -> ChangedGrant:
    change = _may_change(call)
    return ChangedGrant(
        await grants.create(call.catalog, change.grantee, change.role, change.target, call.origin)
    )


async def revoke(call: Call) -> ChangedGrant:
    change = _may_change(call)
    return ChangedGrant(
        await grants.revoke(call.catalog, change.grantee, change.role, change.target, call.origin)
    )


async def list_grants(call: Call) -> Grants:
    """List grants on one object, or of one principal; by default those of the caller."""
    target, grantee = read_listing(call)
    grantees = None if grantee is None else [grantee]
    if target is None and grantee is None and call.identity is not None:
        grantees = list(call.identity.grantees)
    scope = msgspec.json.encode(["grants", target, grantees]).decode()
    found = await call.catalog.database.read(grants.list_grants, call.page(scope), target, grantees)
    return Grants([_to_listed(grant) for grant in found.items], found.token)


def read_change(call: Call) -> GrantChange:
    body = call.decode(_change)
    target = _read_target(body)
    if target is None:
        raise InvalidRequest(
            "the body does not name what the grant is on",
            detail=f'name one of {", ".join(KINDS)}, or send "catalog": true for all of it',
        )
    return GrantChange(body.principal, check_role(body.role), target)


def read_listing(call: Call) -> tuple[Target | None, str | None]:
    """The target of a listing: an object, a grantee, both or neither."""
    body = call.decode(_list)
    return _read_target(body), body.principal


def _may_change(call: Call) -> GrantChange:
    """Check a change of grants; refused without authentication, as it would apply later."""
    if call.identity is None:
        raise InvalidRequest(
            "authentication is off, so that anybody could grant",
            detail="switch it on (auth.enabled = true), or use 'penstock grant' and "
            "'penstock revoke'",
        )
    return read_change(call)


def _read_target(body: GrantTarget) -> Target | None:
    given = [(kind, id) for kind in KINDS if (id := getattr(body, kind)) is not None]
    if len(given) + bool(body.catalog) > 1:
        raise InvalidRequest(
            "the body names several things", detail=f"name one of {', '.join(KINDS)} or catalog"
        )
    for kind, id in given:
        if not id:
            raise InvalidRequest(
                f"{kind} is empty", detail='send "catalog": true for the whole catalog'
            )
        return Target(kind, check_identifier(tuple(id), kind))
    return CATALOG if body.catalog else None


def _to_listed(grant: Grant) -> ListedGrant:
    listed = ListedGrant(grant.grantee, grant.role, grant.created_at, grant.created_by)
    if grant.target == CATALOG:
        listed.catalog = True
    else:
        setattr(listed, grant.target.kind, list(grant.target.id))
    return listed
