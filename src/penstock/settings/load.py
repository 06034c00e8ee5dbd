"""Load settings: default, then file, then environment, then flags; the last one wins.

All problems are collected, so that one run shows all of them.
"""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from penstock.errors import PenstockError
from penstock.settings.keys import SettingKey, list_keys, list_sections
from penstock.settings.redact import redact
from penstock.settings.sections import Settings

CONFIG_FILE = "penstock.toml"
CONFIG_ENV = "PENSTOCK_CONFIG"
ENV_PREFIX = "PENSTOCK__"


class SettingsError(PenstockError):
    """The settings are not usable; the message has one line per problem."""


class LoadedSettings(msgspec.Struct, frozen=True):
    """The settings, and the source of each dotted key's value."""

    settings: Settings
    sources: Mapping[str, str]
    # The file that was read, for a child that must read the same; empty without one.
    file: str = ""


class GivenValue(msgspec.Struct, frozen=True):
    """A value given for a key; `textual` when it came from a shell, where all is text."""

    key: SettingKey
    value: object
    source: str
    textual: bool


class SettingProblem(msgspec.Struct, frozen=True):
    """One line of a SettingsError."""

    line: str


def load(
    config: Path | None, environ: Mapping[str, str], flags: Mapping[str, object]
) -> LoadedSettings:
    """Read the settings; `flags` maps dotted keys to values from the command line."""
    values = {key.dotted: key.default for key in list_keys()}
    sources = {key.dotted: "default" for key in list_keys()}
    problems = []
    for found in _find_all(config, environ, flags):
        checked = _checked(found) if isinstance(found, GivenValue) else found
        if isinstance(checked, SettingProblem):
            problems.append(checked.line)
        else:
            values[checked.key.dotted] = checked.value
            sources[checked.key.dotted] = checked.source
    if problems:
        raise SettingsError("\n".join(problems))
    return LoadedSettings(_settings(values), sources, str(_find_file(config, environ) or ""))


def _find_all(
    config: Path | None, environ: Mapping[str, str], flags: Mapping[str, object]
) -> Iterator[GivenValue | SettingProblem]:
    path = _find_file(config, environ)
    if path is not None:
        yield from _from_file(path)
    yield from _from_environment(environ)
    yield from _from_flags(flags)


def _find_file(config: Path | None, environ: Mapping[str, str]) -> Path | None:
    if config is not None:
        return config
    if named := environ.get(CONFIG_ENV):
        return Path(named)
    beside = Path(CONFIG_FILE)
    return beside if beside.exists() else None


def _from_file(path: Path) -> Iterator[GivenValue | SettingProblem]:
    content = _read(path)
    if isinstance(content, SettingProblem):
        yield content
        return
    sections = {section.name: {k.name: k for k in section.keys} for section in list_sections()}
    for section, entries in content.items():
        if section not in sections:
            yield SettingProblem(
                f"unknown section [{section}] in {path}{_nearest(section, sections)}"
            )
        elif not isinstance(entries, dict):
            yield SettingProblem(
                f"{section} in {path} is a section: write [{section}] and its keys below"
            )
        elif key := sections[section].get(""):
            yield GivenValue(key, entries, str(path), textual=False)
        else:
            for name, value in entries.items():
                if found := sections[section].get(name):
                    yield GivenValue(found, value, str(path), textual=False)
                else:
                    unknown = f"{section}.{name}"
                    known = list_keys()
                    # Of the same name in another section, if there is one.
                    near = _nearest(
                        unknown,
                        [k.dotted for k in known if k.name == name] or [k.dotted for k in known],
                    )
                    yield SettingProblem(f"unknown key {unknown} in {path}{near}")


def _read(path: Path) -> dict[str, object] | SettingProblem:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        return SettingProblem(f"cannot read the settings file {path}: {error.strerror}")
    except UnicodeDecodeError as error:
        return SettingProblem(f"{path} is not UTF-8 text (at byte {error.start})")
    except tomllib.TOMLDecodeError as error:
        return SettingProblem(f"{path} is not valid TOML: {error}")


def _from_environment(environ: Mapping[str, str]) -> Iterator[GivenValue | SettingProblem]:
    keys = {key.env: key for key in list_keys()}
    # PENSTOCK_SERVER_PORT is the most likely slip, and ignoring it would cost someone an hour.
    slips = {name.replace("__", "_") for name in keys}
    for name, value in environ.items():
        if key := keys.get(name):
            yield GivenValue(key, value, name, textual=True)
        elif name.startswith(ENV_PREFIX) or name.replace("__", "_") in slips:
            yield SettingProblem(f"unknown environment variable {name}{_nearest(name, keys)}")


def _from_flags(flags: Mapping[str, object]) -> Iterator[GivenValue]:
    keys = {key.dotted: key for key in list_keys()}
    for dotted, value in flags.items():
        key = keys[dotted]
        yield GivenValue(key, value, key.flag or dotted, textual=isinstance(value, str))


def _checked(given: GivenValue) -> GivenValue | SettingProblem:
    try:
        raw = _parsed(given.key, given.value) if given.textual else given.value
        value = msgspec.convert(raw, given.key.type, strict=not given.textual)
    except ValueError:
        shown = json.dumps(redact(given.key.dotted, given.value), default=str)
        return SettingProblem(
            f"bad value {given.key.dotted} = {shown} (from {given.source}): "
            f"it must be {given.key.wanted}"
        )
    return msgspec.structs.replace(given, value=value)


def _parsed(key: SettingKey, value: Any) -> object:
    """Parse text for a list or a map: JSON, or `a,b` and `name=a,other=b`."""
    text = value.strip()
    if isinstance(key.default, tuple):
        if text.startswith("["):
            return json.loads(text)
        return [part.strip() for part in text.split(",") if part.strip()]
    if isinstance(key.default, dict):
        if text.startswith("{"):
            return json.loads(text)
        parts = [part.strip() for part in text.split(",") if part.strip()]
        # For a part without "=", dict() raises ValueError.
        return dict([part.split("=", 1) for part in parts])
    return value


def _settings(values: Mapping[str, object]) -> Settings:
    nested: dict[str, object] = {
        section.name: {key.name: values[key.dotted] for key in section.keys}
        for section in list_sections()
    }
    nested |= {key.section: values[key.dotted] for key in list_keys() if not key.name}
    return msgspec.convert(nested, Settings)


def _nearest(name: str, right: Iterable[str]) -> str:
    near = get_close_matches(name, list(right), n=1, cutoff=0)
    return f"; the nearest is {near[0]}" if near else ""
