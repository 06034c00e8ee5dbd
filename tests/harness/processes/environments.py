"""Python environments that truly lack what an extra of the package would have brought."""

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping, Sequence
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
        self.site = folder / "lib" / python / "site-packages"
        for distribution in _close(extras):
            for name in _list_tops(distribution):
                self.link(name)
        (self.site / "penstock.pth").write_text(f"{ROOT / 'src'}\n")

    def link(self, name: str) -> None:
        """Bring a module or folder of ours in."""
        if not (self.site / name).exists():
            (self.site / name).symlink_to(Path(sysconfig.get_path("purelib")) / name)

    def unlink(self, name: str) -> None:
        (self.site / name).unlink(missing_ok=True)

    def run(
        self, *arguments: str, cwd: Path | None = None, environ: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run its Python."""
        return subprocess.run(
            [self.python, *arguments],
            cwd=cwd,
            env={**os.environ, **(environ or {})},
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


def _list_tops(distribution: metadata.Distribution) -> set[str]:
    """What a distribution has in site-packages; the package itself is read from the checkout."""
    tops = {file.parts[0] for file in distribution.files or ()}
    return {top for top in tops if top != ".." and not top.endswith(".pth")}
