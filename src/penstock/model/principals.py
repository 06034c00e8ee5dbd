"""Who asks: principals, the groups they are in, and the names that both may have."""

from dataclasses import dataclass, field

from penstock.errors import InvalidRequest

MAX_NAME_BYTES = 255
# Before the name of a group in a grant, and before a name that an identity provider gave.
GROUP, FOREIGN = "group:", "oidc:"
# Who works on the database itself, and the runner that a server starts: nobody else is called so.
OPERATOR, CHILD = "operator", "runner"
RESERVED = (OPERATOR, CHILD)


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller that has proved who it is; `token` is the key that it did so with, if it was one."""

    principal: str
    groups: tuple[str, ...] = ()
    token: str = ""
    is_runner: bool = False
    # Milliseconds; None when what was proved does not end by itself.
    expires_at: int | None = None
    # Whose jobs a runner leases; none means the default cluster.
    clusters: tuple[str, ...] = ()
    # The names under which this caller holds grants; a runner's rights are its jobs'.
    grantees: tuple[str, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        # Made once: an identity is kept, and asked for them with every request.
        names = (self.principal, *(f"{GROUP}{group}" for group in self.groups))
        object.__setattr__(self, "grantees", ("",) if self.is_runner else names)


def check_principal(name: str) -> str:
    """The name of a principal that this server makes itself, which must not look like others."""
    if ":" in name:
        raise InvalidRequest(
            f"the principal {name!r} holds a colon",
            detail=f"names that begin with {FOREIGN!r} or {GROUP!r} come from elsewhere",
        )
    return check_grantee(name)


def check_free(name: str) -> str:
    """The name of a principal that somebody wants, which must not be one of the server's own."""
    if name in RESERVED:
        raise InvalidRequest(
            f"the principal {name!r} is the server's own", detail="choose another name"
        )
    return check_principal(name)


def check_group(name: str) -> str:
    """The name of a group that a key is put into, without what stands before it in a grant."""
    for prefix in (GROUP, FOREIGN):
        if name.startswith(prefix):
            raise InvalidRequest(
                f"the group {name!r} begins with {prefix!r}",
                detail=f"write {name.removeprefix(prefix)!r}; only grants say {GROUP!r}",
            )
    return check_grantee(name)


def check_grantee(name: str) -> str:
    """The name of a principal or group, as a grant has it."""
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
