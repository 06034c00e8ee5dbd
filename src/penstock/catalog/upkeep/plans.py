"""Which versions go and which fragments are merged; pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.lance.upkeep.compaction import FragmentSize
from penstock.model.tables import VersionRange

# Why a version stays.
NEWEST, RECENT, JOB = "newest", "recent", "job"


@dataclass(frozen=True, slots=True)
class Retention:
    """How long a version stays: so many seconds after the next one, or among the newest so many."""

    older_than_seconds: int = 0
    keep_versions: int = 1


@dataclass(frozen=True, slots=True)
class Needed:
    """Versions that somebody needs and what for, and since when a job may need the newest ones."""

    versions: Mapping[int, str] = field(default_factory=dict)
    jobs_since: int | None = None


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """Versions to remove, oldest first, and how many stay for which reason."""

    remove: list[int]
    kept: dict[str, int]


def plan_removal(
    written_at: Mapping[int, int], now_millis: int, retention: Retention, needed: Needed
) -> RemovalPlan:
    """What goes of the versions of a branch, given when each was written.

    A version counts as old from the moment that the next one replaced it: until then it was what
    everybody read, however long ago it was written.
    """
    remove, kept = list[int](), Counter[str]()
    order = sorted(written_at)
    before = now_millis - retention.older_than_seconds * 1000
    for place, version in enumerate(order):
        if place == len(order) - 1:
            kept[NEWEST] += 1
            continue
        # Clocks of writers differ; a version is not replaced before it is there.
        replaced_at = max(written_at[version], written_at[order[place + 1]])
        if version in needed.versions:
            kept[needed.versions[version]] += 1
        elif needed.jobs_since is not None and replaced_at >= needed.jobs_since:
            kept[JOB] += 1
        elif replaced_at > before or len(order) - place <= retention.keep_versions:
            kept[RECENT] += 1
        else:
            remove.append(version)
    return RemovalPlan(remove, dict(kept))


def to_ranges(versions: Sequence[int]) -> list[VersionRange]:
    """Ascending versions as few ranges."""
    found: list[VersionRange] = []
    for each in versions:
        if found and found[-1].end == each:
            found[-1] = VersionRange(found[-1].start, each + 1)
        else:
            found.append(VersionRange(each, each + 1))
    return found


def choose_excluded(
    sizes: Sequence[FragmentSize], target_rows: int, small_fragments: int, deleted_share: float
) -> list[int]:
    """The fragments that a policy leaves as they are; the others are compacted.

    So many small neighbours are merged, newest first, each time with older ones that have no more
    rows than all of these together: so a row is written anew about as often as its fragment's size
    doubles, and not with every merge.
    """
    chosen = {each.id for each in sizes if each.deleted and each.deleted_share >= deleted_share}
    group: list[FragmentSize] = []
    for each in (*reversed(sizes), None):
        rows = sum(one.rows for one in group)
        is_small = each is not None and each.rows < target_rows // 2
        if each is not None and is_small and (not group or each.rows <= rows):
            group.append(each)
            continue
        if len(group) >= small_fragments:
            chosen |= {one.id for one in group}
        group = [each] if each is not None and is_small else []
    return [each.id for each in sizes if each.id not in chosen]
