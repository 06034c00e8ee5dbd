"""Describe fragments by their files: which file holds a field, and which rows exist."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from penstock.lance.columns.fields import get_field, show_path
from penstock.lance.doors import lance
from penstock.model.fragments import FragmentState

BLOB_KEY, EXTENSION_KEY = "lance-encoding:blob", "ARROW:extension:name"


def describe_fragments(
    dataset: "lance.LanceDataset", columns: Sequence[str], inputs: Sequence[str]
) -> tuple[FragmentState, ...]:
    """Describe the fragments of the open version for a function that fills these columns."""
    order, targets, sources = describe_fields(dataset, columns, inputs)
    return tuple(
        describe_files(
            fragment.fragment_id,
            fragment.physical_rows,
            fragment.physical_rows - fragment.num_deletions,
            fragment.data_files(),
            fragment.metadata.overlays,
            fragment.deletion_file() or "",
            order,
            targets,
            sources,
        )
        for fragment in dataset.get_fragments()
    )


def describe_fields(
    dataset: "lance.LanceDataset", columns: Sequence[str], inputs: Sequence[str]
) -> tuple[str, frozenset[int], frozenset[int]]:
    """The order of a function's fields, and the ids of those that it fills and reads.

    The order matters as well: two inputs may swap names.
    """
    targets = [get_field(dataset, show_path((name,))).lance for name in columns]
    sources = [get_field(dataset, name).lance for name in inputs]
    order = [".".join(str(field.id()) for field in fields) for fields in (sources, targets)]
    return (
        ">".join(order),
        frozenset(id for field in targets for id in leaf_ids(field)),
        frozenset(id for field in sources for id in all_ids(field)),
    )


def leaf_ids(field: Any) -> list[int]:
    """The ids of a field's innermost fields, which are the columns of files."""
    children = [] if is_blob(field) else field.children()
    return [id for child in children for id in leaf_ids(child)] if children else [field.id()]


def all_ids(field: Any) -> list[int]:
    """The ids of a field and of everything in it."""
    return [field.id(), *(id for child in field.children() for id in all_ids(child))]


def is_blob(field: Any) -> bool:
    """Whether a field is a blob, whose values are stored separately."""
    found = dict(field.metadata)
    return BLOB_KEY in found or found.get(EXTENSION_KEY, "").startswith("lance.blob")


def has_blobs(field: Any) -> bool:
    """Whether a field is or contains a blob."""
    return is_blob(field) or any(has_blobs(child) for child in field.children())


def describe_files(
    id: int,
    physical_rows: int,
    rows: int,
    files: Sequence[Any],
    overlays: Iterable[Any] | None,
    deletions: str,
    order: str,
    targets: frozenset[int],
    inputs: frozenset[int],
) -> FragmentState:
    """Describe a fragment by its files, for a function."""
    holding = [file for file in files if targets & set(file.fields)]
    # Values that Lance overlays on a file change without it.
    laid_over = tuple(str(overlay) for overlay in overlays or ())
    return FragmentState(
        id,
        physical_rows,
        rows,
        rows,
        (order, *show_files(files, inputs), *laid_over),
        tuple(sorted(str(file.path) for file in holding)),
        (),
        deletions,
        len(holding) == 1 and targets <= set(holding[0].fields),
    )


def show_files(files: Iterable[Any], ids: Collection[int]) -> tuple[str, ...]:
    """The files that hold some of the fields, each with the ids of those it holds.

    The ids matter: after two columns swapped names, the same file holds other inputs.
    """
    # -2 marks a field whose values moved to another file.
    held = {
        str(file.path): sorted(id for id in set(file.fields) & set(ids) if id >= 0)
        for file in files
    }
    return tuple(sorted(f"{path}:{','.join(map(str, of))}" for path, of in held.items() if of))
