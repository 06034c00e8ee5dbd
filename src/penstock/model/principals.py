"""Who asks: principals, the groups they are in, and the names that both may have."""

from dataclasses import dataclass, field

from penstock.errors import InvalidRequest

MAX_NAME_BYTES = 255
# Before the name of a group in a grant, and before a name that an identity provider gave.
GROUP, FOREIGN = "group:", "oidc:"


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller that has proved who it is; `token` is the key that it did so with, if it was one."""

    principal: str
    groups: tuple[str, ...] = ()
    token: str = ""
    is_runner: bool = False
    # Milliseconds; None when what was proved does not end by itself.
    expires_at: int | None = None
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


def check_grantee(name: str) -> str:
    """The name of a principal or group, as a grant has it."""
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
