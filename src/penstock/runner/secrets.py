"""Secrets that functions are given: found by name, and kept out of everything that is written."""

import logging
import os
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.errors import InvalidRequest
from penstock.jobs.functions.redaction import VARIABLE, Redaction
from penstock.jobs.spark.tasks import WorkerPython
from penstock.jobs.specs import ColumnSpec, JobSpec, PreviewSpec, RefreshSpec
from penstock.model.functions import Function, SecretBinding

MAX_BYTES = 65_536


class SecretStore:
    """The secrets of a runner: variables that it was started with, and a folder of files."""

    def __init__(
        self, variables: Mapping[str, str], folder: str, environ: MutableMapping[str, str]
    ) -> None:
        self._values = {name: environ.get(variable, "") for name, variable in variables.items()}
        self._folder = Path(folder) if folder else None
        # Every worker inherits what is left.
        for variable in variables.values():
            environ.pop(variable, None)
        # What was read so far: a text may come after its job.
        self._known = {value for value in self._values.values() if value}
        self._redaction = Redaction(self._known)

    def resolve(self, bindings: Sequence[tuple[SecretBinding, Function]]) -> dict[str, str]:
        """The values of what functions name, by their variables."""
        found: dict[str, str] = {}
        for binding, function in bindings:
            value = self._find(binding, function)
            if found.setdefault(binding.variable, value) != value:
                raise InvalidRequest(
                    f"functions of one view have different secrets in {binding.variable}",
                    detail="give one of them another variable",
                )
        self._learn(found.values())
        return found

    def hide(self, text: str) -> str:
        return self._redaction.hide(text)

    def guard_logs(self) -> None:
        """Keep the secrets out of this process's own log."""
        for handler in logging.getLogger().handlers:
            handler.addFilter(self._hide_record)

    def _hide_record(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self.hide(record.getMessage()), ()
        if record.exc_info:
            # Its traceback as text: what formats it again would show it as it was.
            told = logging.Formatter().formatException(record.exc_info)
            record.msg, record.exc_info = f"{record.msg}\n{self.hide(told)}", None
        return True

    def _find(self, binding: SecretBinding, function: Function) -> str:
        name = binding.secret
        value = self._values.get(name) or self._read(name)
        if not value:
            raise InvalidRequest(
                f"this runner has no secret {name!r}, which function {function.name} needs as "
                f"{binding.variable}",
                detail="name its variable in secrets.variables, or put a file of its name into "
                "secrets.folder, of the runner",
            )
        return value

    def _read(self, name: str) -> str:
        # A server that is not ours may name anything.
        if self._folder is None or name in (".", "..") or os.sep in name or "\0" in name:
            return ""
        try:
            with open(self._folder / name, encoding="utf-8") as file:
                text = file.read(MAX_BYTES)
        except (OSError, UnicodeDecodeError):
            return ""
        return text.removesuffix("\n").removesuffix("\r")

    def _learn(self, values: Any) -> None:
        news = set(values) - self._known
        if news:
            self._known |= news
            self._redaction = Redaction(self._known)


def list_bindings(spec: JobSpec) -> list[tuple[SecretBinding, Function]]:
    """The secrets that the functions of a job name, and which function each."""
    functions: list[Function] = []
    if isinstance(spec, PreviewSpec) and spec.altered is not None:
        spec = spec.altered
    if isinstance(spec, ColumnSpec) and spec.function is not None:
        functions = [spec.function]
    if isinstance(spec, RefreshSpec):
        own = [] if spec.definition.function is None else [spec.definition.function]
        functions = [*own, *spec.definition.column_functions]
    return [
        (binding, function)
        for function in functions
        if function.registered is not None
        for binding in function.registered.secrets
    ]


def add_secrets(python: WorkerPython, values: Mapping[str, str]) -> WorkerPython:
    """The Python of workers that find these values in their environment."""
    names = ",".join(sorted(values))
    return replace(python, variables={**python.variables, **values, VARIABLE: names})
