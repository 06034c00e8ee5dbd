"""Functions that have a name in the catalog: register them, look at them, name them."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.errors import InvalidFunction, InvalidRequest
from penstock.model.identifiers import Identifier
from penstock.sdk.connection.names import Name, read_id, show_id
from penstock.sdk.connection.wire import Wire, path_of
from penstock.sdk.functions.declared import Chunker, Function, Udf, Udtf
from penstock.sdk.functions.packing import list_taken, redeclaration, udtf_spec
from penstock.sdk.functions.types import Wire as Type


class RegisteredFunction:
    """A function of a lake by its name; of one version, or of the newest at each use."""

    def __init__(self, wire: Wire, id: Identifier, version: int | None = None) -> None:
        self._wire = wire
        self.id = id
        self.version = version

    @property
    def name(self) -> str:
        """Its name with its namespaces, as in `ml.embed`."""
        return show_id(self.id)

    def describe(self) -> dict[str, Any]:
        """All that is known of it: `signature`, `manifest`, `source`, `used_by` and more."""
        found: dict[str, Any] = self._ask("describe")
        return found

    def versions(self) -> list["RegisteredFunction"]:
        """All its versions, the oldest first."""
        path = path_of("namespace", self.id[:-1], "function/list")
        pages = self._wire.pages(lambda token: self._wire.get(path, page_token=token), "functions")
        return [
            RegisteredFunction(self._wire, self.id, each["version"])
            for page in pages
            for each in page
            if tuple(each["id"]) == self.id
        ]

    def used_by(self) -> list[dict[str, Any]]:
        """The columns and views that use any of its versions, as far as one may see them."""
        found: list[dict[str, Any]] = self.describe()["used_by"]
        return found

    def disable(self) -> "RegisteredFunction":
        """Refuse new uses and new jobs, of this version or of all; what is running ends."""
        return self._alter(disabled=True)

    def enable(self) -> "RegisteredFunction":
        return self._alter(disabled=False)

    def set_properties(self, **properties: str | None) -> "RegisteredFunction":
        """Set properties of the function as a whole; None removes one."""
        return self._alter(properties=properties)

    def drop(self) -> None:
        """Drop this version, or all of them; what uses it refuses this."""
        self._wire.change(path_of("function", self.id, "drop"), {"version": self.version})

    def _alter(self, **changes: Any) -> "RegisteredFunction":
        body = {"version": self.version, **changes}
        self._wire.change(path_of("function", self.id, "alter"), body)
        return self

    def _ask(self, operation: str) -> Any:
        body = {"version": self.version}
        return self._wire.read(path_of("function", self.id, operation), body)

    def __repr__(self) -> str:
        version = "" if self.version is None else f"@{self.version}"
        return f"<function {self.name}{version}>"


def read_function(wire: Wire, given: "RegisteredFunction | Name") -> RegisteredFunction:
    """A handle, or the name of a function, as in `ml.embed` or `ml.embed@2`."""
    if isinstance(given, RegisteredFunction):
        return given
    name, version = given, None
    if isinstance(given, str) and "@" in given and not given.endswith("`"):
        name, _, number = given.rpartition("@")
        if not number.isascii() or not number.isdecimal() or not int(number):
            raise InvalidRequest(
                f"the version in {given!r} is {number!r}", detail="write a number, as in ml.embed@2"
            )
        version = int(number)
    return RegisteredFunction(wire, read_id(name), version)


def registration(
    function: object, secrets: Mapping[str, str] | None, properties: Mapping[str, str] | None
) -> dict[str, Any]:
    """The body that registers a decorated function."""
    more = {"secrets": dict(secrets or {}), "properties": dict(properties or {})}
    if isinstance(function, Chunker | Udtf):
        spec = udtf_spec(function)
        return {"udtf_spec": spec, **more}
    if not isinstance(function, Udf):
        raise InvalidFunction(
            f"{getattr(function, '__name__', function)!r} is no function of Penstock's",
            detail="decorate it with @penstock.udf, chunker or udtf",
        )
    outputs: list[dict[str, Any]] | None = None
    if function.outputs is not None:
        outputs = [{"name": k, "data_type": v} for k, v in function.outputs.items()]
    elif function.data_type is not None:
        outputs = [{"data_type": function.data_type}]
    body = redeclaration(function, None)
    del body["udf_backend"]
    body.pop("manifest_checksum", None)
    return {**body, "inputs": _list_inputs(function), "outputs": outputs, **more}


def use(
    function: RegisteredFunction,
    inputs: Sequence[str] | None,
    outputs: Mapping[str, Type | None] | None = None,
) -> dict[str, Any]:
    """The `function` of a column that a registered one fills."""
    told: dict[str, Any] = {"name": list(function.id), "version": function.version}
    if inputs is not None:
        told["input_columns"] = list(inputs)
    if outputs is not None:
        told["outputs"] = [{"column": k, "data_type": v} for k, v in outputs.items()]
    return told


def _list_inputs(function: Function[..., Any]) -> list[dict[str, Any]]:
    """The inputs, with their types where annotations say them."""
    names = function.inputs or ()
    taken = list_taken(function, names) or [{"data_type": None}] * len(names)
    return [{**each, "name": name} for name, each in zip(names, taken, strict=True)]
