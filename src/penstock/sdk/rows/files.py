"""Files of rows by their names: paths, folders, patterns, and the addresses of stores."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

from penstock.errors import InvalidRequest, Unavailable
from penstock.sdk.rows.doors import fs, pa

if TYPE_CHECKING:
    import pyarrow

Format = Literal["csv", "json", "parquet", "arrow"]

ENDINGS: dict[str, tuple[Format, str | None]] = {
    ".csv": ("csv", ","),
    ".tsv": ("csv", "\t"),
    ".jsonl": ("json", None),
    ".ndjson": ("json", None),
    ".json": ("json", None),
    ".parquet": ("parquet", None),
    ".pq": ("parquet", None),
    ".arrow": ("arrow", None),
    ".feather": ("arrow", None),
    ".ipc": ("arrow", None),
}
PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
STORES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "file")
_ADDRESS = re.compile(
    r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?]*)(/[^?]*(?:\?(?!\w+=)[^?]*)*)?(\?\w+=.*)?"
)
_WILD = re.compile(r"[*?\[]")
# A folder's name that tells a column's value, as Hive and Spark write them.
_KEY = re.compile(r"(?:^|(?<=/))([^/=]+)=([^/]*)")
_WHOLE = re.compile(r"-?[0-9]{1,18}")
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class FileOptions:
    """How files are read whose names do not tell it."""

    format: Format | None = None
    # Of CSV: what is between two fields, and what stands for a null besides an empty field.
    delimiter: str | None = None
    nulls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RowFile:
    """A file of rows, and where it is."""

    system: Any = field(repr=False)
    path: str
    # As people name it.
    name: str
    format: Format
    size: int
    modified_nanos: int
    delimiter: str = ","
    nulls: tuple[str, ...] = ()
    # Columns whose values the names of its folders tell, and their types.
    keys: tuple[tuple[str, str, int | str | None], ...] = ()

    def open(self) -> "pyarrow.NativeFile":
        """The file's bytes."""
        with reading(self.name):
            return self.system.open_input_file(self.path)

    def unpack(self, raw: "pyarrow.NativeFile") -> "pyarrow.NativeFile":
        """What is in its bytes, if they are compressed as a whole."""
        codec = PACKED.get(Path(self.path).suffix.lower())
        return raw if codec is None else pa.CompressedInputStream(raw, codec)


class reading:  # noqa: N801 - used as a function
    """Errors of storage as our own, with the file's name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FileNotFoundError):
            raise InvalidRequest(
                f"there is no file {self._name}", detail="check the path"
            ) from error
        if isinstance(error, PermissionError):
            raise InvalidRequest(
                f"{self._name} may not be read: {error.strerror or error}",
                detail="give this user the right to read it",
            ) from error
        if isinstance(error, OSError):
            told = str(error).partition("\n")[0]
            raise Unavailable(
                f"{self._name} cannot be read: {told}",
                detail="check the address, the network and the credentials of the store",
            ) from error


def find_files(given: Any, options: FileOptions | None = None) -> list[RowFile]:
    """The files of a path, folder, pattern or address, or of several, in the order of their names.

    Of a folder, those whose names tell their format, at any depth; hidden ones (`_x`, `.x`) are
    left out.
    """
    options = options or FileOptions()
    found: dict[tuple[int, str], RowFile] = {}
    systems: dict[str, Any] = {}
    for each in [given] if isinstance(given, str | Path) else given:
        for file in _find(str(each), options, systems):
            found.setdefault((id(file.system), file.path), file)
    return list(found.values())


def is_path(data: Any) -> bool:
    """Whether data are the names of files."""
    if isinstance(data, str | Path):
        return True
    return (
        isinstance(data, list | tuple)
        and bool(data)
        and all(isinstance(each, str | Path) for each in data)
    )


def _find(name: str, options: FileOptions, systems: dict[str, Any]) -> Iterator[RowFile]:
    system, path, shown = _place(name, systems)
    with reading(name):
        info = system.get_file_info(path)
        if info.type == fs.FileType.File:
            yield _to_file(system, info, name, "", options, is_named=True)
            return
        is_folder = info.type == fs.FileType.Directory
        if not is_folder and not _WILD.search(path):
            raise InvalidRequest(f"there is no file {name}", detail="check the path")
        base = path if is_folder else _WILD.split(path, maxsplit=1)[0].rpartition("/")[0]
        pattern = None if is_folder else re.compile(_to_regex(path))
        infos = system.get_file_info(
            fs.FileSelector(base or "/", allow_not_found=True, recursive=True)
        )
    files = []
    for each in sorted(infos, key=lambda one: one.path):
        below = each.path[len(base) :].lstrip("/")
        if each.type != fs.FileType.File:
            continue
        if pattern is None:
            parts = (part for part in below.split("/") if "=" not in part)
            hidden = any(part.startswith(("_", ".")) for part in parts)
            if hidden or (options.format is None and _ending(each.path)[0] is None):
                continue
        elif not pattern.fullmatch(each.path):
            continue
        files.append(_to_file(system, each, shown + each.path, below, options, is_named=False))
    if not files:
        raise InvalidRequest(
            f"there is no file of rows in {name}" if is_folder else f"no file matches {name}",
            detail=f"check the path; known endings are {', '.join(ENDINGS)}",
        )
    yield from _with_keys(files, base)


def _place(name: str, systems: dict[str, Any]) -> tuple[Any, str, str]:
    """The file system of a name, the path in it, and what names have before such paths."""
    match = _ADDRESS.fullmatch(name)
    if match is None:
        system = systems.setdefault("", fs.LocalFileSystem())
        path = str(Path(name).expanduser())
        return system, str(Path.cwd() / path), ""
    scheme, host, rest, query = match[1].lower(), match[2], match[3] or "", match[4] or ""
    if scheme not in STORES:
        raise InvalidRequest(
            f"{name} is an address that is not known here",
            detail=f"give a path, or an address of {', '.join(f'{s}://' for s in STORES)}",
        )
    key = f"{scheme}://{host}{query}"
    if key not in systems:
        with reading(name):
            try:
                systems[key] = fs.FileSystem.from_uri(
                    f"{scheme}://{host}{'/' if scheme == 'file' else ''}{query}"
                )
            except pa.ArrowInvalid as error:
                raise InvalidRequest(
                    f"{name} is no address: {error}", detail="correct it"
                ) from error
    system, base = systems[key]
    if scheme == "file":
        return system, rest, "file://"
    return system, f"{base.rstrip('/')}{rest}".rstrip("/"), f"{scheme}://"


def _to_file(
    system: Any, info: Any, name: str, below: str, options: FileOptions, *, is_named: bool
) -> RowFile:
    format, delimiter = _ending(info.path)
    format = options.format or format
    if format is None:
        raise InvalidRequest(
            f"the name of {name} does not tell what is in it",
            detail=f"known endings are {', '.join(ENDINGS)}, also with {', '.join(PACKED)} after "
            "them; or say its format",
        )
    return RowFile(
        system,
        info.path,
        name,
        format,
        info.size or 0,
        info.mtime_ns or 0,
        options.delimiter or delimiter or ",",
        options.nulls,
    )


def _ending(path: str) -> tuple[Format | None, str | None]:
    suffixes = Path(path).suffixes
    if suffixes and suffixes[-1].lower() in PACKED:
        suffixes.pop()
    return ENDINGS.get(suffixes[-1].lower(), (None, None)) if suffixes else (None, None)


def _to_regex(pattern: str) -> str:
    """A pattern of paths: `*` and `?` stay within a folder, `**` goes through any."""
    parts = []
    for token in re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])", pattern):
        if token == "**/":
            parts.append("(?:.*/)?")
        elif token == "**":
            parts.append(".*")
        elif token == "*":
            parts.append("[^/]*")
        elif token == "?":
            parts.append("[^/]")
        elif token.startswith("[") and token.endswith("]") and len(token) > 2:
            inner = token[1:-1].replace("\\", r"\\")
            parts.append(f"[{'^' + inner[1:] if inner[0] == '!' else inner}]")
        else:
            parts.append(re.escape(token))
    return "".join(parts)


def _with_keys(files: Sequence[RowFile], base: str) -> Iterator[RowFile]:
    """The files with the columns that folders called `key=value` tell."""
    below = [file.path[len(base) :].lstrip("/").rpartition("/")[0] for file in files]
    told = [{name: unquote(text) for name, text in _KEY.findall(each)} for each in below]
    keys: list[list[tuple[str, str, int | str | None]]] = [[] for _ in files]
    for name in dict.fromkeys(name for each in told for name in each):
        texts = [each.get(name, NO_VALUE) for each in told]
        is_number = all(_WHOLE.fullmatch(text) for text in texts if text != NO_VALUE)
        for found, text in zip(keys, texts, strict=True):
            value = None if text == NO_VALUE else int(text) if is_number else text
            found.append((name, "int64" if is_number else "string", value))
    for file, found in zip(files, keys, strict=True):
        yield replace(file, keys=tuple(found))
