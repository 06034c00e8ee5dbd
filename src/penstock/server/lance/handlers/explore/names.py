"""What is in a namespace, names that hold a text, and what the caller may do with each."""

from typing import Annotated, Literal

import msgspec

from penstock.catalog.access import grants
from penstock.catalog.names import search
from penstock.catalog.names.search import Name
from penstock.model.identifiers import check_identifier, show
from penstock.model.paging import Page, request_page
from penstock.model.rights import ICEBERG_TABLE, ROLES
from penstock.server.lance.call import Body, Call

Kind = Literal["namespace", "table", "materialized_view", "view", "iceberg_table", "function"]
ObjectKind = Literal["namespace", "table", "view", "iceberg_table", "function"]
Limit = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
SearchText = Annotated[str, msgspec.Meta(max_length=255, pattern="^[^\\x00]*$")]
DEFAULT_LIMIT = 100
MAX_OBJECTS = 200


class ListChildren(Body):
    kinds: list[Kind] | None = None
    limit: Limit | None = None
    page_token: str | None = None


class SearchNames(ListChildren, kw_only=True):
    text: SearchText


class NamedObject(msgspec.Struct):
    kind: ObjectKind
    id: list[str]


class DescribeRights(Body):
    objects: Annotated[list[NamedObject], msgspec.Meta(max_length=MAX_OBJECTS)]


class ShownName(msgspec.Struct, omit_defaults=True):
    kind: str
    id: list[str]
    created_at: int
    version: int | None = None
    updated_at: int | None = None


class Names(msgspec.Struct, omit_defaults=True):
    names: list[ShownName]
    page_token: str | None = None


class Rights(msgspec.Struct):
    # The roles that the caller has on each, in the order of the request.
    roles: list[list[str]]


_children = msgspec.json.Decoder(ListChildren)
_search = msgspec.json.Decoder(SearchNames)
_rights = msgspec.json.Decoder(DescribeRights)


async def list_children(call: Call) -> Names:
    body = call.decode(_children)
    kinds = sorted(set(body.kinds or search.KINDS))
    scope = f"names:{show(call.id)}:{','.join(kinds)}"
    page = request_page(scope, body.page_token, body.limit or DEFAULT_LIMIT, call.max_page)
    database = call.catalog.database
    return _to_names(await search.list_children(database, call.id, page, kinds, call.only))


async def find(call: Call) -> Names:
    """The names below a namespace that hold a text."""
    body = call.decode(_search)
    kinds = sorted(set(body.kinds or search.KINDS))
    scope = f"search:{show(call.id)}:{','.join(kinds)}:{body.text}"
    page = request_page(scope, body.page_token, body.limit or DEFAULT_LIMIT, call.max_page)
    database = call.catalog.database
    return _to_names(await search.search(database, call.id, body.text, page, kinds, call.only))


async def describe_rights(call: Call) -> Rights:
    """The caller's roles on some objects; none on what it may not see, or what is not there."""
    wanted = call.decode(_rights).objects
    if call.identity is None:
        return Rights([list(ROLES) for _ in wanted])
    found = list[list[str]]()
    for each in wanted:
        id = check_identifier(tuple(each.id), "id in objects")
        if not id and each.kind != "namespace":
            found.append([])
            continue
        kind = ICEBERG_TABLE if each.kind == search.ICEBERG else each.kind
        standing = await grants.find_standing(
            call.catalog.database, call.identity.grantees, kind, id
        )
        found.append([role for role, rights in ROLES.items() if standing.has(rights)])
    return Rights(found)


def _to_names(page: Page[Name]) -> Names:
    shown = [
        ShownName(each.kind, list(each.identifier), each.created_at, each.version, each.updated_at)
        for each in page.items
    ]
    return Names(shown, page.token)
