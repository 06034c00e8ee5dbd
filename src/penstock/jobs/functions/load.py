"""A function's stored bytes become something to call; nothing else unpickles or imports them."""

import base64
import binascii
import hashlib
import pickle
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import msgspec

from penstock.annotations import find_converter
from penstock.errors import FunctionFailed, PenstockError
from penstock.jobs.functions.children import list_rows, listed
from penstock.jobs.functions.event_loop import CallLoop, awaited, gathered, is_async
from penstock.jobs.functions.foreign import adapt, list_parameters, unpickle
from penstock.jobs.functions.frames import show_frames
from penstock.jobs.functions.redaction import hide, of_worker
from penstock.jobs.functions.source import import_function
from penstock.model.envelopes import FunctionCode, read_content
from penstock.model.functions import Form, Function, Kind, RowsKind

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# What unpickling code of another Python version raises.
OTHER_PYTHON = ("code() argument", "code expected", "marshal", "unknown opcode", "bytecode")
MAX_LOADED = 4
# Kinds that are called for each row by itself; the others are given whole batches.
ROW_BY_ROW = ("scalar", "chunker", "udtf")
# Where an envelope has the pickle, and its checksum.
KEYS: dict[Form, tuple[tuple[str, ...], str]] = {
    "penstock/1": (("payload",), "sha256"),
    "udf_pickle": (("udf_pickle",), "udf_checksum"),
    "udtf_spec": (("chunker_payload", "udtf_payload"), ""),
}
# Envelopes that other clients use too, around objects of their own.
FOREIGN: tuple[Form, ...] = ("udf_pickle", "udtf_spec")
_loaded: dict[tuple[str, str, str], "LoadedFunction"] = {}
_loading = threading.Lock()


@dataclass(frozen=True, slots=True)
class LoadedFunction:
    """A function that can be called, and how that is done."""

    call: Callable[..., Any]
    kind: Kind | RowsKind
    # Where the calls of an async function run.
    loop: CallLoop | None = None


def load(content: bytes, function: Function) -> LoadedFunction:
    """Load a function, once in a process; a class is instantiated then."""
    # Instances differ by what they are made with.
    key = function.sha256, function.kind or "", repr(_initialization(function))
    with _loading:
        found = _loaded.pop(key, None) or _load(content, function)
        # The last one used is the last in line; a worker outlives many jobs and their models.
        _loaded[key] = found
        while len(_loaded) > MAX_LOADED:
            old = _loaded.pop(next(iter(_loaded)))
            if old.loop is not None:
                old.loop.close()
        return found


def _load(content: bytes, function: Function) -> LoadedFunction:
    # Before code of the user's can change what is known of them.
    of_worker()
    _check(function, "the stored function", content, function.sha256)
    source = read_content(content) if function.form == "penstock/1" else None
    kind: Kind | RowsKind | None
    if source is not None and source.source:
        made = _import(source, function)
        kind = function.kind or _declared_kind(made)
    else:
        payload, kind = _unpack(content, function)
        if function.python and function.python != PYTHON:
            raise _other_python(function, f"it was made with Python {function.python}")
        made = _unpickle(payload, function)
    made, typed = _take_types(made, function)
    is_foreign = _is_foreign(made, function)
    if is_foreign:
        kind = function.kind or _declared_kind(made.func)
        made = made.func
    kind = kind or getattr(made, "penstock_kind", None) or "scalar"
    makes_rows = function.form == "udtf_spec"
    if kind not in get_args(RowsKind if makes_rows else Kind):
        raise unusable(function, f"its kind is {kind!r}", "use scalar, arrow or batch")
    loop = CallLoop() if is_async(made) and not is_foreign else None
    if isinstance(made, type):
        instantiate = partial(_instantiate, made, function)
        made = instantiate() if loop is None else loop.call(instantiate)
    if not callable(made):
        raise unusable(
            function, f"it is a {type(made).__name__}, which can't be called", "send a callable"
        )
    if is_foreign:
        return LoadedFunction(adapt(made, kind, function), kind)
    if loop is not None:
        made = gathered(made, list_rows) if makes_rows else made
        made = made if kind in ROW_BY_ROW else awaited(made, loop)
        return LoadedFunction(typed(made), kind, loop)
    return LoadedFunction(typed(listed(made) if makes_rows else made), kind)


def _take_types(made: Any, function: Function) -> tuple[Any, Callable[..., Any]]:
    """What is called, and what has it take values as its annotations say."""
    if not isinstance(made, dict) or "call" not in made:
        return made, lambda call: call
    others = made.get("others")
    annotations = [*made.get("takes", ())][: len(function.inputs)]
    annotations += [others] * (len(function.inputs) - len(annotations))
    found = [None if each is None else find_converter(each) for each in annotations]

    def typed(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*values: Any) -> Any:
            given = zip(values, found, strict=True)
            return call(*(v if make is None else make(v) for v, make in given))

        return called

    return made["call"], typed


def _unpack(content: bytes, function: Function) -> tuple[bytes, Kind | RowsKind | None]:
    if function.form == "pickle":
        return content, function.kind
    names, checksum_name = KEYS[function.form]
    try:
        document = msgspec.json.decode(content, type=dict[str, Any])
        payload = base64.b64decode(next(document[name] for name in names if name in document))
    except (msgspec.MsgspecError, StopIteration, TypeError, binascii.Error) as error:
        raise unusable(
            function,
            f"its envelope cannot be read: {error or 'it has no ' + ' or '.join(names)}",
            "send the function again",
        ) from error
    if checksum := document.get(checksum_name):
        _check(function, "the pickle in the envelope", payload, checksum)
    told = document.get("kind") if function.form == "penstock/1" else None
    return payload, function.kind or told


def _import(code: FunctionCode, function: Function) -> Any:
    try:
        return import_function(code.source, code.entrypoint, function.sha256)
    # Importing runs code of the user's; whatever that raises is told.
    except BaseException as error:
        missing = isinstance(error, ModuleNotFoundError)
        raise unusable(
            function,
            f"importing it raised {type(error).__name__}: {error}",
            "name the module's package for pip when you register it"
            if missing
            else show_frames(error) or "correct the function, and register it again",
        ) from error


def _initialization(function: Function) -> dict[str, Any]:
    """What instances of a class are made with."""
    return {} if function.registered is None else function.registered.initialization


def _is_foreign(made: Any, function: Function) -> bool:
    """Whether it is an object of another client's, which has the function in it."""
    packed = function.form in FOREIGN
    return packed and hasattr(made, "func") and not isinstance(made, partial)


def _check(function: Function, what: str, content: bytes, expected: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != expected.lower():
        raise unusable(
            function,
            f"{what} has the sha256 {found}, and {expected} is expected",
            "send the function again",
        )


def _unpickle(payload: bytes, function: Function) -> Any:
    try:
        # What cloudpickle makes is read by pickle itself; functions in it need cloudpickle there.
        import cloudpickle  # noqa: F401

        packed = function.form in FOREIGN
        return unpickle(payload) if packed else pickle.loads(payload)
    except ImportError as error:
        missing = error.name or str(error)
        raise unusable(
            function,
            f"it needs the module {missing}, which the workers do not have: {error}",
            "name its package in the manifest's pip, or its folder in py_modules",
        ) from error
    # Unpickling runs code of the user's; whatever that raises is told.
    except BaseException as error:
        if isinstance(error, PenstockError):
            raise
        text = str(error)
        if any(sign in text for sign in OTHER_PYTHON):
            raise _other_python(function, f"unpickling raised {text}") from error
        raise unusable(
            function,
            f"unpickling raised {type(error).__name__}: {text}",
            show_frames(error) or "send the function again",
        ) from error


def _instantiate(made: type, function: Function) -> Any:
    try:
        return made(**_initialization(function))
    # The user's constructor may raise anything.
    except BaseException as error:
        raise unusable(
            function,
            f"{made.__name__}() raised {type(error).__name__}: {error}",
            show_frames(error),
        ) from error


def _declared_kind(func: Any) -> Kind:
    """The kind that the annotations of another client's function mean."""
    annotations = [parameter.annotation for parameter in list_parameters(func)]
    names = {getattr(each, "__name__", str(each)) for each in annotations}
    if any(name.endswith("RecordBatch") for name in names):
        return "batch"
    return "arrow" if any(name.endswith("Array") for name in names) else "scalar"


def _other_python(function: Function, why: str) -> FunctionFailed:
    return unusable(
        function,
        f"{why}, and the workers run Python {PYTHON}",
        f"make the pickle with Python {PYTHON}, or send the job to a cluster with that Python",
    )


def unusable(function: Function, why: str, detail: str) -> FunctionFailed:
    return FunctionFailed(
        f"function {function.name} (version {function.version}) cannot be loaded: {hide(why)}",
        detail=hide(detail),
    )
