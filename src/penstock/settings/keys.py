"""Settings described as data: names, type, default, meaning, and valid values."""

from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import fields

from penstock.settings.sections import Settings


class SettingKey(Struct, frozen=True, kw_only=True):
    """One setting, `section.name`; without a name, a whole section with free keys."""

    section: str
    name: str
    type: Any
    default: object
    description: str
    wanted: str
    flag: str = ""

    @property
    def dotted(self) -> str:
        return f"{self.section}.{self.name}" if self.name else self.section

    @property
    def env(self) -> str:
        return "PENSTOCK__" + self.dotted.replace(".", "__").upper()

    def read(self, settings: Settings) -> object:
        """The value of this setting."""
        section = getattr(settings, self.section)
        return getattr(section, self.name) if self.name else section


class Section(Struct, frozen=True, kw_only=True):
    """One section of settings and its keys."""

    name: str
    description: str
    keys: tuple[SettingKey, ...]


@cache
def list_sections() -> tuple[Section, ...]:
    """All sections, in the order of their definition."""
    return tuple(
        Section(name=section.name, description=_describe(section), keys=_keys_of(section))
        for section in fields(Settings)
    )


@cache
def list_keys() -> tuple[SettingKey, ...]:
    """All settings, in the order of their definition."""
    return tuple(key for section in list_sections() for key in section.keys)


def _keys_of(section: Any) -> tuple[SettingKey, ...]:
    if get_origin(section.type) is Annotated:
        return (_key(section.name, section, name=""),)
    return tuple(_key(section.name, field, field.name) for field in fields(section.type))


def _key(section: str, field: Any, name: str) -> SettingKey:
    bare, meta = _split(field.type)
    extra = meta.extra or {}
    default = field.default_factory() if field.default is NODEFAULT else field.default
    return SettingKey(
        section=section,
        name=name,
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


def _describe(section: Any) -> str:
    if get_origin(section.type) is Annotated:
        return "One table for each entry: `[clusters.NAME]`."
    return (section.type.__doc__ or "").strip()
