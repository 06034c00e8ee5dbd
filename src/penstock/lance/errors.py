"""Translate pylance's errors to ours, so that a client's mistake is never an internal error.

pylance raises OSError, ValueError or RuntimeError with the Rust error's text, so we go by the text.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import (
    ColumnNotFound,
    ConcurrentCommit,
    DamagedFile,
    IndexAlreadyExists,
    IndexNotFound,
    InvalidRequest,
    InvalidTableState,
    PenstockError,
    SchemaMismatch,
    Unavailable,
    VanishedFile,
)
from penstock.lance import doors
from penstock.lance.doors import lance
from penstock.lance.session.damage import find_damage, name_file
from penstock.lance.storage.lake import Place

log = logging.getLogger(__name__)

PANIC = "PanicException"

# Where in Lance's source an error was raised.
SOURCE = re.compile(r",? ?/\S+/rust/\S+")
# In order: the first one found in the text decides.
KINDS: tuple[tuple[str, type[PenstockError], str], ...] = (
    # Errors on the way to a catalog's server: they name an address that must not be taken for the
    # table's.
    (r"reqwest::Error", Unavailable, "check that the server can be reached"),
    (r"Index name '.*' already exists", IndexAlreadyExists, "choose another name, or drop it"),
    (r"index not found", IndexNotFound, "list the table's indexes"),
    (
        r"Cannot cast column|Duplicate field name|already exists in the dataset",
        SchemaMismatch,
        "describe the table to see its columns and their types",
    ),
    (
        r"[Cc]ommit conflict|concurrent (transaction|writers|commit)|Too much write contention"
        # The commit was prepared for something that is gone: another writer was faster.
        r"|Incompatible transaction|(preempted|removed) by (a )?concurrent"
        # Another writer made the table's first version.
        r"|Dataset already exists",
        ConcurrentCommit,
        "read the table again and retry",
    ),
    (
        r"No field named|(Column|Field|column|field) \S+ (does not exist|not found)"
        r"|not found in (the )?schema|does not exist in the dataset schema|no such column",
        ColumnNotFound,
        "describe the table to see its columns",
    ),
    (
        r"[Ss]chema (mismatch|does not match)|Append with different schema|fields did not match",
        SchemaMismatch,
        "send the columns of the table, with their types",
    ),
    (
        r"LanceError\(IO\)|object store|Connection refused|timed out",
        Unavailable,
        "check that the store can be reached",
    ),
    (r"Not found: .*\.(lance|manifest)", VanishedFile, "check the table's files"),
    (r"corrupt", InvalidTableState, "check the table's files"),
)


@contextmanager
def translated(bridge: "doors.bridge.Bridge | None" = None) -> Iterator[None]:
    """Translate what pylance raises inside the block."""
    try:
        yield
    except PenstockError:
        raise
    except (OSError, ValueError, RuntimeError, KeyError, TypeError, NotImplementedError) as error:
        refusal = bridge.refusal if bridge is not None else None
        if refusal is not None and not isinstance(refusal, ConcurrentCommit):
            raise refusal from error
        raise translate(error) from error
    except BaseException as error:
        if not is_panic(error):
            raise
        log.exception("Lance panicked")
        raise InvalidRequest(
            f"Lance cannot do this: {_brief(error)}", detail="check the request's values"
        ) from error


@contextmanager
def naming(place: Place, dataset: "lance.LanceDataset") -> Iterator[None]:
    """Name the file when Lance only says that one is damaged."""
    try:
        yield
    except (DamagedFile, OSError, ValueError, RuntimeError) as error:
        damaged = error if isinstance(error, DamagedFile) else find_damage(str(error))
        if damaged is None:
            raise
        raise name_file(place, dataset, damaged) from error


def find_lasting(error: BaseException) -> PenstockError | None:
    """What Lance refuses and would refuse again; None for what may pass, or is not Lance's."""
    if isinstance(error, PenstockError) or not SOURCE.search(str(error)):
        return None
    found = translate(error)
    return found if isinstance(found, ColumnNotFound | SchemaMismatch) else None


def is_panic(error: BaseException) -> bool:
    """Whether Rust panicked: pyo3 raises that outside of Exception."""
    return type(error).__name__ == PANIC


def translate(error: BaseException) -> PenstockError:
    """Our error for what happened."""
    text = str(error)
    if (damaged := find_damage(text)) is not None:
        return damaged
    for pattern, kind, remedy in KINDS:
        if re.search(pattern, text):
            return kind(_brief(error), detail=remedy)
    return InvalidRequest(_brief(error), detail="check the request against the table's schema")


def _brief(error: BaseException) -> str:
    """The first line of a message, without Lance's source location and dumps."""
    line = (str(error) or type(error).__name__).splitlines()[0]
    line = SOURCE.sub("", line)
    line = re.sub(r" in dataset schema: Schema \{.*", "", line)
    return re.sub(r"^(External error: )?LanceError\(\w+\): ", "", line)[:500]
