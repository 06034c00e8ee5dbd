"""Names under which a refresh keeps its work, where attempts may be for different versions."""

import uuid

import msgspec

from penstock.jobs.refresh.view_notes import Pins
from penstock.jobs.specs import RefreshSpec


def name_work(job: str, pins: Pins) -> str:
    """The name of a job's work for these versions of the sources, and their moment."""
    text = msgspec.json.encode([job, pins], order="sorted").decode()
    return str(uuid.uuid5(uuid.NAMESPACE_OID, text))


def is_overtaken(spec: RefreshSpec, pins: Pins) -> bool:
    """Whether another job, while this one was paused, took the view further than these versions."""
    known = spec.watermark
    if spec.src_version is not None or known is None:
        return False
    is_later = pins.moment is not None and known.moment is not None and pins.moment < known.moment
    return is_later or any(
        # The numbers of snapshots have no order.
        not pin.file and pin.version < known.versions.get(id, 0)
        for id, pin in pins.versions.items()
    )
