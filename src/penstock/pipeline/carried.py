"""What was finished by rounds, attempts and jobs before, and which of it may have moved since."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from penstock.datasets.checkpoints import Checkpoint
from penstock.datasets.kept_work import name_folder, owner_of_column
from penstock.datasets.parts import Part
from penstock.pipeline.plan.backfill import BackfillOptions, FragmentState, fragment_key
from penstock.pipeline.replacements import BackfillSpec


class Moved(NamedTuple):
    """Finished work of fragments that are not as they were: their rows may be anywhere now."""

    files: tuple[Checkpoint, ...] = ()
    parts: tuple[str, ...] = ()


def kept_folder(spec: BackfillSpec) -> str:
    """Where finished work of the column lies; '' when it is of no use to other jobs."""
    function = spec.function_identity
    if function is None or not spec.binding:
        return ""
    return name_folder(owner_of_column(spec.binding, spec.branch), function)


def is_usable(note: Checkpoint, job: str, options: BackfillOptions) -> bool:
    """Whether a file may go in as it is; what another job failed on is tried again."""
    if note.origin is None or note.origin.job == job:
        return True
    return not (note.failed or options.force)


def find_moved(
    notes: Sequence[Checkpoint],
    parts: Sequence[Part],
    states: Iterable[FragmentState],
    options: BackfillOptions,
) -> Moved:
    """The files and parts whose rows may be elsewhere than where they were computed."""
    now = {state.id: state for state in states}
    keys: dict[int, str] = {}

    def is_same(fragment: int, key: str) -> bool:
        if fragment not in keys:
            state = now.get(fragment)
            keys[fragment] = "" if state is None else fragment_key(state, options)
        return keys[fragment] == key

    return Moved(
        tuple(
            note
            for note in notes
            if note.origin is not None
            and not (
                is_same(note.work.id, note.work.key)
                and now[note.work.id].rows >= note.work.live_rows
            )
        ),
        tuple(
            part.name
            for part in parts
            if not (is_same(part.fragment, part.key) and not now[part.fragment].deletions)
        ),
    )
