"""Each setting described as data: its names, type, default, meaning, and what a value must be."""

from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import fields

from penstock.settings.sections import Settings


class Key(Struct, frozen=True, kw_only=True):
    """One setting, `section.name`."""

    section: str
    name: str
    type: Any
    default: object
    description: str
    wanted: str
    flag: str = ""

    @property
    def dotted(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def env(self) -> str:
        return f"PENSTOCK__{self.section.upper()}__{self.name.upper()}"


class Section(Struct, frozen=True, kw_only=True):
    """One section of settings and its keys."""

    name: str
    description: str
    keys: tuple[Key, ...]


@cache
def list_sections() -> tuple[Section, ...]:
    """All sections in the order of their definition."""
    return tuple(
        Section(name=section.name, description=_doc(section.type), keys=_keys_of(section))
        for section in fields(Settings)
    )


@cache
def list_keys() -> tuple[Key, ...]:
    """All settings in the order of their definition."""
    return tuple(key for section in list_sections() for key in section.keys)


def _keys_of(section: Any) -> tuple[Key, ...]:
    return tuple(_key(section.name, field) for field in fields(section.type))


def _key(section: str, field: Any) -> Key:
    bare, meta = _split(field.type)
    extra = meta.extra or {}
    default = field.default_factory() if field.default is NODEFAULT else field.default
    return Key(
        section=section,
        name=field.name,
        type=field.type,
        default=default,
        description=meta.description or "",
        wanted=extra.get("wanted") or _wanted(bare, meta),
        flag=extra.get("flag", ""),
    )


def _split(annotated: Any) -> tuple[Any, Meta]:
    if get_origin(annotated) is not Annotated:
        return annotated, Meta()
    bare, meta = get_args(annotated)
    return bare, meta


def _wanted(bare: Any, meta: Meta) -> str:
    if get_origin(bare) is Literal:
        *some, last = get_args(bare)
        return f"{', '.join(some)} or {last}"
    if bare is int:
        return f"a whole number {_span(meta)}"
    if bare is bool:
        return "true or false"
    if bare is str:
        return "text"
    return "names with text values"


def _span(meta: Meta) -> str:
    return f"of at least {meta.ge}" if meta.le is None else f"from {meta.ge} to {meta.le}"


def _doc(section: type[Struct]) -> str:
    return (section.__doc__ or "").strip()
