"""Envelopes: a function's code as clients pack it into `udf`, read without unpickling.

Decoded from base64 it is our own envelope (JSON with `format`, and a pickle or source text in it),
another client's (JSON with `udf_pickle`), or a bare pickle. Everything here is pure.
"""

import base64
import binascii
import hashlib
import json
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from penstock.errors import InvalidRequest
from penstock.model.functions import (
    Form,
    Function,
    FunctionOutput,
    Input,
    Kind,
    Needs,
    OnError,
    OnNull,
    Registered,
)
from penstock.model.pickles.options import read_options

FORMAT: Form = "penstock/1"
FORMS = f'"format": "{FORMAT}" or "udf_pickle"'

Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Seconds = Annotated[float, Meta(gt=0, le=30 * 86400)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Concurrency = Annotated[int, Meta(ge=1, le=10_000)]
Place = Annotated[int, Meta(ge=0, le=10_000)]
# Paths below a folder from which modules are imported.
SourcePath = Annotated[
    str, Meta(max_length=400, pattern=r"^[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*\.py$")
]
PythonName = Annotated[str, Meta(max_length=200, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
# What another client leaves out of a manifest's checksum.
NOT_SAID = (
    *("name", "checksum", "created_at", "created_by"),
    *("delete_local_zips", "local_zip_output_dir"),
)
# The module that has the function itself.
ENTRY_FILE = "user_function.py"


class FunctionCode(Struct, frozen=True, kw_only=True):
    """The bytes that a client sent, and what their envelope says about them."""

    content: bytes
    form: Form
    kind: Kind | None = None
    batch_size: int | None = None
    timeout_seconds: float | None = None
    on_error: OnError = OnError()
    needs: Needs = Needs()
    concurrency: int | None = None
    on_null: OnNull = "call"
    may_be_null: tuple[int, ...] = ()
    # What it takes, in the order of its inputs; empty when that is not known.
    takes: tuple[Input, ...] = ()
    # Where the pickle was made: `python` as "3.11", `system`, `arch`; as far as it says.
    platform: dict[str, str] = {}
    # The source text, by file, and what it calls the function, where there is one.
    source: dict[str, str] = {}
    entrypoint: str = ""
    registered: Registered | None = None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    def bind(
        self,
        name: str,
        version: str,
        inputs: tuple[str, ...],
        outputs: tuple[FunctionOutput, ...],
        declared_inputs: tuple[str, ...] = (),
    ) -> Function:
        """A function of this code and all that came with it, for these columns."""
        if self.may_be_null and max(self.may_be_null) >= len(inputs):
            raise InvalidRequest(
                f"may_be_null in udf has the place {max(self.may_be_null)}, and there are "
                f"{len(inputs)} inputs",
                detail="count them from 0",
            )
        needs_value = next((each for each in outputs if not each.nullable), None)
        if self.on_null == "null" and needs_value is not None:
            raise InvalidRequest(
                f"column {needs_value.column!r} takes no null, and on_null in udf is 'null'",
                detail="use on_null 'call', or let the column be nullable",
            )
        return Function(
            name=name,
            version=version,
            inputs=inputs,
            outputs=outputs,
            declared_inputs=declared_inputs,
            sha256=self.sha256,
            form=self.form,
            kind=self.kind,
            batch_size=self.batch_size,
            timeout_seconds=self.timeout_seconds,
            on_error=self.on_error,
            needs=self.needs,
            concurrency=self.concurrency,
            on_null=self.on_null,
            may_be_null=self.may_be_null,
            python=self.platform.get("python"),
            registered=self.registered,
        )

    @property
    def takes_whole_rows(self) -> bool:
        """Whether it may name no inputs: another client's functions of batches take all columns."""
        return self.form == "udf_pickle"


class _OnError(Struct, forbid_unknown_fields=True):
    action: str = "fail"
    max_attempts: Annotated[int, Meta(ge=1, le=1000)] = 3
    backoff_seconds: Annotated[float, Meta(ge=0, le=86400)] = 1.0
    match: tuple[Name, ...] = ()
    rate_limit: tuple[Name, ...] = ()
    max_failed_rows: Annotated[int, Meta(ge=0, le=2**62)] | None = None
    max_failed_fraction: Annotated[float, Meta(ge=0, le=1)] | None = None


class _Needs(Struct, forbid_unknown_fields=True):
    num_cpus: Annotated[float, Meta(gt=0, le=10_000)] | None = None
    num_gpus: Annotated[float, Meta(ge=0, le=10_000)] | None = None
    memory: Annotated[int, Meta(gt=0, le=2**50)] | None = None


class _Source(Struct):
    entrypoint: PythonName
    files: dict[SourcePath, str]


class _Envelope(Struct):
    kind: Kind | None = None
    payload: str | None = None
    sha256: str | None = None
    source: _Source | None = None
    batch_size: Count | None = None
    timeout_seconds: Seconds | None = None
    on_error: _OnError | None = None
    needs: _Needs | None = None
    concurrency: Concurrency | None = None
    on_null: OnNull | None = None
    may_be_null: tuple[Place, ...] = ()
    takes: tuple[Input, ...] = ()
    python: str | None = None
    env: dict[str, Any] | None = None


class _ForeignEnvelope(Struct):
    udf_pickle: str
    udf_checksum: str | None = None


def read_code(udf: str) -> FunctionCode:
    """Read the text of `udf`; raises when it is not base64, or its checksum does not match."""
    content = from_base64("udf", udf)
    if not content:
        raise InvalidRequest("udf is empty", detail="send the base64 of a function")
    return read_content(content)


def read_content(content: bytes) -> FunctionCode:
    """Read a decoded `udf`: an envelope or a pickle."""
    try:
        found = msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        # No pickle begins like that.
        if content.lstrip()[:1] == b"{":
            raise InvalidRequest(
                f"udf is not JSON, though it begins like it: {error}",
                detail="encode the whole JSON object in base64, once",
            ) from error
        return FunctionCode(content=content, form="pickle")
    if not isinstance(found, dict):
        raise _other(f"a JSON {_kind_of(found)}")
    if "format" in found:
        return _read_own(content, found)
    if "udf_pickle" in found:
        return _read_foreign(content, found)
    raise _other("a JSON object of another kind")


def check_sha256(what: str, given: str, content: bytes) -> None:
    """Refuse a checksum that does not match the content."""
    found = hashlib.sha256(content).hexdigest()
    if given.strip().lower() != found:
        raise InvalidRequest(
            f"{what} is {given[:100]!r}, but the content has {found}",
            detail="send the SHA-256 in hex of exactly the bytes that you send",
        )


def check_manifest(manifest: str, given: str) -> None:
    """Refuse a checksum that is neither that of a manifest's text nor of what the manifest says."""
    if given.strip().lower() != _hash_said(manifest):
        check_sha256("manifest_checksum", given, manifest.encode())


def _hash_said(manifest: str) -> str | None:
    """The checksum of what a manifest says, whatever it is called."""
    try:
        found = msgspec.json.decode(manifest)
        if not isinstance(found, dict):
            return None
        said = {key: value for key, value in found.items() if key not in NOT_SAID}
        # In that client's form: sorted, without spaces, and in ASCII.
        text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def _read_own(content: bytes, found: dict[str, Any]) -> FunctionCode:
    if found["format"] != FORMAT:
        raise InvalidRequest(
            f"udf has the unknown format {str(found['format'])[:100]!r}",
            detail=f"use {FORMAT!r}",
        )
    sent: _Envelope = _convert(found, _Envelope)
    if sent.source is not None:
        _check_source(sent)
    elif sent.payload is None or sent.sha256 is None or sent.kind is None:
        raise InvalidRequest(
            "udf has no code: kind, payload and sha256, or source, are missing",
            detail="send a pickle as payload with its sha256 and kind, or text as source",
        )
    else:
        check_sha256("sha256 in udf", sent.sha256, from_base64("payload in udf", sent.payload))
    return FunctionCode(
        content=content,
        form=FORMAT,
        kind=sent.kind,
        batch_size=sent.batch_size,
        timeout_seconds=sent.timeout_seconds,
        on_error=_finish(sent.on_error or _OnError(), OnError),
        needs=_finish(sent.needs or _Needs(), Needs),
        concurrency=sent.concurrency,
        on_null=sent.on_null or "call",
        may_be_null=sent.may_be_null,
        takes=sent.takes,
        platform=_read_platform(sent),
        source={} if sent.source is None else dict(sent.source.files),
        entrypoint="" if sent.source is None else sent.source.entrypoint,
    )


def _check_source(sent: _Envelope) -> None:
    assert sent.source is not None
    if sent.payload is not None:
        raise InvalidRequest("udf has both payload and source", detail="send one of them")
    if ENTRY_FILE not in sent.source.files:
        raise InvalidRequest(
            f"source in udf has no file {ENTRY_FILE}",
            detail=f"put the function itself into {ENTRY_FILE}, named by entrypoint",
        )


def pack_source(files: dict[str, str], entrypoint: str, *, num_gpus: float | None = None) -> bytes:
    """The envelope of a function's source text."""
    needs = {} if num_gpus is None else {"needs": {"num_gpus": num_gpus}}
    source = {"entrypoint": entrypoint, "files": dict(sorted(files.items()))}
    return msgspec.json.encode({"format": FORMAT, "source": source, **needs})


def _read_foreign(content: bytes, found: dict[str, Any]) -> FunctionCode:
    sent = _convert(found, _ForeignEnvelope)
    pickled = from_base64("udf_pickle in udf", sent.udf_pickle)
    if sent.udf_checksum is not None:
        check_sha256("udf_checksum in udf", sent.udf_checksum, pickled)
    options = read_options(pickled)
    return FunctionCode(
        content=content,
        form="udf_pickle",
        batch_size=options.batch_size,
        timeout_seconds=options.timeout_seconds,
        on_error=options.on_error,
        needs=options.needs,
    )


def _read_platform(sent: _Envelope) -> dict[str, str]:
    told = {"python": sent.python} | {k: (sent.env or {}).get(k) for k in ("system", "arch")}
    if told["python"] is None:
        told["python"] = (sent.env or {}).get("python")
    return {k: v for k, v in told.items() if isinstance(v, str) and v.isprintable() and len(v) < 99}


def from_base64(what: str, text: str) -> bytes:
    """Decode base64; `what` names the field in errors."""
    # Encoders for mail break lines.
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidRequest(
            f"{what} is not base64: {error}", detail="encode the bytes with standard base64"
        ) from error


def read_on_error(what: str, found: object) -> OnError:
    """What a failed row or partition means; None is the default: the job fails."""
    made: OnError = _finish(_convert(found or {}, _OnError, what), OnError, what)
    return made


def read_needs(what: str, found: object) -> Needs:
    """The resources that one task of a function needs."""
    made: Needs = _finish(_convert(found, _Needs, what), Needs, what)
    return made


def _finish(sent: Struct, kind: type[Any], what: str = "udf") -> Any:
    return _convert(msgspec.to_builtins(sent), kind, what)


def _convert(found: object, kind: type[Any], what: str = "udf") -> Any:
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"{what} is not right: {error}", detail="correct the field after '$.' in it"
        ) from error


def _other(found: str) -> InvalidRequest:
    return InvalidRequest(f"udf holds {found}", detail=f"use an object with {FORMS}, or a pickle")


def _kind_of(found: object) -> str:
    names = {list: "list", str: "text", bool: "boolean", type(None): "null"}
    return names.get(type(found), "number")
