"""Principals, their groups, and the names that both may have."""

from dataclasses import dataclass, field

from penstock.errors import InvalidRequest

MAX_NAME_BYTES = 255
# Prefixes of a group's name in a grant, and of a name from an identity provider.
GROUP, FOREIGN = "group:", "oidc:"
# Names of the operator at the database, and of the runner that a server starts; nobody else may use
# them.
OPERATOR, CHILD = "operator", "runner"
RESERVED = (OPERATOR, CHILD)


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated caller; `token` is the key that it used, if it was one."""

    principal: str
    groups: tuple[str, ...] = ()
    token: str = ""
    is_runner: bool = False
    # Milliseconds; None when the credential does not expire.
    expires_at: int | None = None
    # The clusters whose jobs a runner leases; none means the default cluster.
    clusters: tuple[str, ...] = ()
    # The browser's session that the request belongs to; empty without one.
    session: str = ""
    # The names under which this caller holds grants; a runner has the rights of its jobs.
    grantees: tuple[str, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        # Computed once: an identity is cached, and every request needs them.
        names = (self.principal, *(f"{GROUP}{group}" for group in self.groups))
        object.__setattr__(self, "grantees", ("",) if self.is_runner else names)


def check_principal(name: str) -> str:
    """Check the name of a principal that this server creates; it must not look like others."""
    if ":" in name:
        raise InvalidRequest(
            f"the principal {name!r} holds a colon",
            detail=f"names that begin with {FOREIGN!r} or {GROUP!r} come from elsewhere",
        )
    return check_grantee(name)


def check_free(name: str) -> str:
    """Check the name of a new principal; it must not be one of the server's own."""
    if name in RESERVED:
        raise InvalidRequest(
            f"the principal {name!r} is the server's own", detail="choose another name"
        )
    return check_principal(name)


def check_group(name: str) -> str:
    """Check the name of a key's group, without the prefix that it has in a grant."""
    for prefix in (GROUP, FOREIGN):
        if name.startswith(prefix):
            raise InvalidRequest(
                f"the group {name!r} begins with {prefix!r}",
                detail=f"write {name.removeprefix(prefix)!r}; only grants say {GROUP!r}",
            )
    return check_grantee(name)


def check_grantee(name: str) -> str:
    """Check the name of a principal or group in a grant."""
    if ":" in name and not name.startswith((GROUP, FOREIGN)):
        raise InvalidRequest(
            f"{name!r} holds a colon, and no principal's name does",
            detail=f"write {GROUP}NAME for a group, {FOREIGN}NAME for somebody of the issuer",
        )
    if not name.removeprefix(GROUP).removeprefix(FOREIGN) or not name.isprintable():
        raise InvalidRequest(
            f"{name!r} is no name of a principal or group", detail="use printable characters"
        )
    if len(name.encode(errors="replace")) > MAX_NAME_BYTES:
        raise InvalidRequest(
            "the name of a principal or group is too long",
            detail=f"use at most {MAX_NAME_BYTES} bytes of UTF-8",
        )
    if name != name.strip():
        raise InvalidRequest(f"{name!r} begins or ends with a space", detail="remove it")
    return name
