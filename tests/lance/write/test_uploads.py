"""What uploads leave behind when their server dies is swept up."""

import os
from pathlib import Path

from penstock.lance.storage.lake import Lake
from penstock.lance.write.uploads import sweep


def test_only_uploads_that_fell_silent_long_ago_are_removed(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    place = lake.place(f"{lake.root}/t.lance")
    for name, seconds in (("old", 1000), ("young", 5000)):
        file = Path(place.location) / "_uploads" / name / "data" / "x.lance"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x")
        os.utime(file, (seconds, seconds))
    sweep(place, before_millis=2_000_000)
    assert [p.name for p in (Path(place.location) / "_uploads").iterdir()] == ["young"]
    sweep(place, before_millis=9_000_000)
    assert not (Path(place.location) / "_uploads").exists()
