"""The keys of principals, without their secrets. They are made and revoked by the operator."""

import msgspec

from penstock.catalog.access import tokens
from penstock.catalog.access.tokens import Token
from penstock.model.paging import cut_page, request_page
from penstock.server.lance.call import Body, Call, Text


class ListKeys(Body):
    principal: Text | None = None
    limit: int | None = None
    page_token: str | None = None


class ShownKey(msgspec.Struct, omit_defaults=True):
    id: str
    kind: str
    principal: str
    created_at: int
    groups: tuple[str, ...] = ()
    note: str = ""
    expires_at: int | None = None
    used_at: int | None = None
    revoked_at: int | None = None
    clusters: tuple[str, ...] = ()


class Keys(msgspec.Struct, omit_defaults=True):
    keys: list[ShownKey]
    page_token: str | None = None


_list = msgspec.json.Decoder(ListKeys)


async def list_keys(call: Call) -> Keys:
    """All keys, or those of one principal, the newest first."""
    body = call.decode(_list)
    page = request_page(f"keys:{body.principal or ''}", body.page_token, body.limit, call.max_page)
    found = await tokens.list_tokens(call.catalog.database, body.principal)
    keys = [f"{2**62 - each.created_at:020}:{each.id}" for each in found]
    left = [each for each in zip(found, keys, strict=True) if each[1] > (page.after or "")]
    left = left[: page.limit + 1]
    cut = cut_page(page, [token for token, _ in left], [key for _, key in left])
    return Keys([_show(token) for token in cut.items], cut.token)


def _show(token: Token) -> ShownKey:
    return ShownKey(
        token.id,
        token.kind,
        token.principal,
        token.created_at,
        token.groups,
        token.note,
        token.expires_at,
        token.used_at,
        token.revoked_at,
        token.clusters,
    )
