"""`udtf_spec`: the function of a udtf or chunker view, read without unpickling.

Its `udtf` is base64 of a JSON object with `udtf_payload` or `chunker_payload`; that object is
stored with the view, and only a worker unpickles the payload.
"""

import hashlib
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from penstock.errors import InvalidRequest
from penstock.model.envelopes import (
    Concurrency,
    Place,
    check_manifest,
    check_sha256,
    from_base64,
    read_needs,
    read_on_error,
)
from penstock.model.functions import Needs, OnError, OnNull, Registered, RowsKind, check_label
from penstock.model.pickles.options import PickledOptions, read_options
from penstock.model.views import Kind

Label = Annotated[str, Meta(min_length=1, max_length=400, pattern="^[^\\x00-\\x1f]*$")]
Path = Annotated[str, Meta(min_length=1, max_length=4000)]
KINDS: dict[str, Kind] = {
    "query": "query",
    "udtf": "udtf",
    "chunker": "chunker",
    "scalar_udtf": "chunker",
}
PAYLOADS = {"udtf": "udtf_payload", "chunker": "chunker_payload"}


class Udtf(Struct, frozen=True, kw_only=True):
    """A function that makes a view's rows, as its client describes it."""

    kind: RowsKind
    name: str
    version: str
    # The JSON that is stored with the view, under its hash.
    content: bytes
    sha256: str
    # None: all columns of the query.
    input_columns: tuple[str, ...] | None = None
    partition_by: str | None = None
    partition_by_indexed_column: str | None = None
    # Base64 of the Arrow schema of the function's results.
    output_schema: str | None = None
    on_error: OnError = OnError()
    needs: Needs = Needs()
    concurrency: int | None = None
    on_null: OnNull = "call"
    may_be_null: tuple[int, ...] = ()
    python: str | None = None
    manifest: str | None = None
    registered: Registered | None = None


class _Spec(Struct):
    udtf: str
    kind: str | None = None
    udtf_sha: str | None = None
    udtf_name: Label | None = None
    udtf_version: Label | None = None
    input_columns: list[Path] | None = None
    partition_by: Path | None = None
    partition_by_indexed_column: Path | None = None
    num_cpus: float | None = None
    num_gpus: float | None = None
    memory: float | None = None
    error_handling: dict[str, Any] | None = None
    concurrency: Concurrency | None = None
    on_null: OnNull | None = None
    may_be_null: tuple[Place, ...] = ()
    batch: bool | None = None
    manifest: str | None = None
    manifest_checksum: str | None = None
    # Ours: clients name the function instead, and the server fills in what it is.
    registered: Registered | None = None


class _Envelope(Struct):
    name: Label | None = None
    version: Label | None = None
    udtf_payload: str | None = None
    chunker_payload: str | None = None
    output_schema_bytes: str | None = None
    input_columns: list[Path] | None = None
    partition_by: Path | None = None
    partition_by_indexed_column: Path | None = None
    batch: bool | None = None
    python: str | None = None
    manifest: Any = None


def read_kind(kind: str) -> Kind:
    """Read the kind: `query`, `udtf` or `chunker`, which is also called `scalar_udtf`."""
    if kind not in KINDS:
        raise InvalidRequest(
            f"kind is {kind[:100]!r}", detail="use one of " + ", ".join(map(repr, KINDS))
        )
    return KINDS[kind]


def read_udtf(kind: str, spec: object) -> Udtf | None:
    """Read `udtf_spec` (decoded JSON, or None) of a view of this kind; None for kind `query`."""
    wanted = read_kind(kind)
    if wanted == "query":
        if spec is not None:
            raise InvalidRequest(
                "udtf_spec is given for a view of kind 'query'",
                detail="leave it out, or use kind 'udtf' or 'chunker'",
            )
        return None
    if spec is None:
        raise InvalidRequest(
            f"udtf_spec is missing, and a view of kind {wanted!r} needs its function",
            detail="send udtf_spec with udtf, udtf_sha, udtf_name and udtf_version",
        )
    sent: _Spec = _convert("udtf_spec", spec, _Spec)
    if sent.kind is not None and KINDS.get(sent.kind) != wanted:
        raise InvalidRequest(
            f"udtf_spec is of kind {sent.kind[:100]!r}, and the view of kind {wanted!r}",
            detail="use the same kind in both",
        )
    content = from_base64("udtf in udtf_spec", sent.udtf)
    if sent.udtf_sha is not None:
        _check_sha(sent, content)
    envelope = _read_envelope(wanted, content)
    payload = envelope.chunker_payload or envelope.udtf_payload or ""
    options = read_options(from_base64(f"{PAYLOADS[wanted]} in udtf", payload))
    batch = sent.batch if sent.batch is not None else envelope.batch
    if wanted == "udtf" and batch:
        raise InvalidRequest(
            "batch is for chunkers; a udtf gets a whole partition", detail="leave batch out"
        )
    if wanted == "udtf" and sent.on_null == "null":
        raise InvalidRequest(
            "on_null is for chunkers; a udtf gets a whole partition", detail="leave on_null out"
        )
    return Udtf(
        kind="udtf" if wanted == "udtf" else "batch_chunker" if batch else "chunker",
        name=check_label(sent.udtf_name or envelope.name or wanted, "udtf_name"),
        version=sent.udtf_version or envelope.version or hashlib.sha256(content).hexdigest(),
        content=content,
        sha256=hashlib.sha256(content).hexdigest(),
        input_columns=_read_inputs(sent, envelope),
        output_schema=envelope.output_schema_bytes,
        on_error=options.on_error
        if sent.error_handling is None
        else read_on_error("error_handling in udtf_spec", sent.error_handling),
        needs=_read_needs(sent),
        concurrency=sent.concurrency,
        on_null=sent.on_null or "call",
        may_be_null=sent.may_be_null,
        python=envelope.python,
        manifest=_read_manifest(sent),
        registered=sent.registered,
        **_read_partition(wanted, sent, envelope, options),
    )


def _check_sha(sent: _Spec, content: bytes) -> None:
    """Check a hash, which may be of the text or of the bytes that it encodes."""
    assert sent.udtf_sha is not None
    if sent.udtf_sha.strip().lower() != hashlib.sha256(sent.udtf.encode()).hexdigest():
        check_sha256("udtf_sha", sent.udtf_sha, content)


def _read_envelope(kind: str, content: bytes) -> _Envelope:
    try:
        found = msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidRequest(
            f"udtf in udtf_spec is not JSON: {error}",
            detail=f'encode a JSON object with "{PAYLOADS[kind]}" in base64',
        ) from error
    envelope: _Envelope = _convert("udtf in udtf_spec", found, _Envelope)
    payloads = {"udtf": envelope.udtf_payload, "chunker": envelope.chunker_payload}
    payload = payloads.pop(kind)
    if any(payloads.values()) or not payload:
        raise InvalidRequest(
            f"udtf in udtf_spec is not the function of a view of kind {kind!r}",
            detail=f"put the pickle, in base64, into its field {PAYLOADS[kind]!r} alone",
        )
    from_base64(f"{PAYLOADS[kind]} in udtf", payload)
    return envelope


def _read_inputs(sent: _Spec, envelope: _Envelope) -> tuple[str, ...] | None:
    found = sent.input_columns if sent.input_columns is not None else envelope.input_columns
    if found is None:
        return None
    if not found or len(set(found)) < len(found):
        raise InvalidRequest(
            "input_columns of udtf_spec is empty, or has a column twice",
            detail="name each input once, or leave input_columns out for all columns",
        )
    return tuple(found)


def _read_partition(
    kind: str, sent: _Spec, envelope: _Envelope, options: PickledOptions
) -> dict[str, str | None]:
    by = sent.partition_by or envelope.partition_by
    told = (each.partition_by_indexed_column for each in (sent, envelope, options))
    indexed = next(filter(None, told), None)
    if kind != "udtf" and (by or indexed):
        raise InvalidRequest(
            "partition_by is for views of kind 'udtf'; a chunker gets row by row",
            detail="leave it out",
        )
    if by and indexed:
        raise InvalidRequest(
            "both partition_by and partition_by_indexed_column are given", detail="use one of them"
        )
    return {"partition_by": by, "partition_by_indexed_column": indexed}


def _read_needs(sent: _Spec) -> Needs:
    memory = sent.memory
    return read_needs(
        "udtf_spec",
        {
            "num_cpus": sent.num_cpus or None,
            "num_gpus": sent.num_gpus,
            "memory": int(memory) if memory and memory == memory and memory < 2**60 else None,
        },
    )


def _read_manifest(sent: _Spec) -> str | None:
    if sent.manifest is None or not sent.manifest.strip():
        if sent.manifest_checksum:
            raise InvalidRequest(
                "manifest_checksum is given without a manifest", detail="send both"
            )
        return None
    if sent.manifest_checksum is not None:
        check_manifest(sent.manifest, sent.manifest_checksum)
    return sent.manifest


def _convert(what: str, found: object, kind: type[Any]) -> Any:
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"{what} is not right: {error}", detail="correct the field after '$.'"
        ) from error
