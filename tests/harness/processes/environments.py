"""Python environments that truly lack what an extra of the package would have brought."""

import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from tests.harness.root import ROOT


class Environment:
    """A virtual environment with the plain package and some of its extras, linked from our own."""

    def __init__(self, folder: Path, *extras: str) -> None:
        venv.create(folder, symlinks=True)
        self.python = folder / "bin" / "python"
        python = f"python{sys.version_info.major}.{sys.version_info.minor}"
        site = folder / "lib" / python / "site-packages"
        for distribution in _close(extras):
            _link(distribution, site)
        (site / "penstock.pth").write_text(f"{ROOT / 'src'}\n")

    def run(self, *arguments: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        """Run its Python."""
        return subprocess.run(
            [self.python, *arguments],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )


def _close(extras: Sequence[str]) -> list[metadata.Distribution]:
    """What pip would install: the package, what it needs, and what these need."""
    found: dict[str, metadata.Distribution] = {}
    wanted = [("penstock", frozenset(extras))]
    seen = set()
    while wanted:
        name, chosen = wanted.pop()
        if (name, chosen) in seen:
            continue
        seen.add((name, chosen))
        found[name] = metadata.distribution(name)
        for text in found[name].requires or ():
            needed = Requirement(text)
            kinds = [{"extra": extra} for extra in chosen] or [{"extra": ""}]
            if needed.marker is None or any(needed.marker.evaluate(kind) for kind in kinds):
                wanted.append((needed.name, frozenset(needed.extras)))
    return list(found.values())


def _link(distribution: metadata.Distribution, site: Path) -> None:
    ours = Path(sysconfig.get_path("purelib"))
    for top in {file.parts[0] for file in distribution.files or ()}:
        # Scripts are outside, and the package itself is read from the checkout.
        if top != ".." and not top.endswith(".pth") and not (site / top).exists():
            (site / top).symlink_to(ours / top)
