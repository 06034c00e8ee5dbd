"""The functions of a lake that have a name."""

from collections.abc import Mapping
from typing import Any

from penstock.sdk.connection.names import Name, read_id
from penstock.sdk.connection.wire import path_of
from penstock.sdk.contents.contents import Contents, missing
from penstock.sdk.functions.declared import Chunker, Udf, Udtf
from penstock.sdk.functions.registered import RegisteredFunction, read_function, registration


class Functions(Contents):
    """What a lake does with functions."""

    def functions(self, namespace: Name | None = None) -> list[str]:
        """The names of all functions, or of those directly in a namespace."""
        return self._names(namespace, "function")

    def function(self, name: Name) -> RegisteredFunction:
        """A function that exists, as in `ml.embed`, or one version of it, as in `ml.embed@2`."""
        found = read_function(self._wire, name)
        found.describe()
        return found

    def create_function(
        self,
        name: Name,
        function: Udf[..., Any] | Chunker[..., Any] | Udtf[..., Any] | type[Any],
        *,
        secrets: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> RegisteredFunction:
        """Register a decorated function under a name; returns its version, a new one if it differs.

        `secrets` are names of secrets, by the environment variables that it finds them in.
        """
        id = read_id(name)
        body = registration(function, secrets, properties)
        told = self._wire.change(path_of("function", id, "create"), body)
        return RegisteredFunction(self._wire, id, told["function"]["version"])

    def drop_function(self, name: Name, *, missing_ok: bool = False) -> None:
        """Drop a function, or the version that the name says; see `RegisteredFunction.drop`."""
        with missing(missing_ok):
            read_function(self._wire, name).drop()
