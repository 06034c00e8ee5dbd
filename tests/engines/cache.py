"""What engines need, fetched once: artifacts by Maven, Python packages by pip."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from tests.harness.root import ROOT

# Beside the checkout's other caches; another place serves several checkouts.
FOLDER = Path(os.environ.get("ENGINES_CACHE") or ROOT / ".engines")
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"


class Missing(Exception):
    """Something that an engine needs is not on this machine, and what to do about it."""


@dataclass(frozen=True)
class Cache:
    """The folder of what was fetched."""

    folder: Path = FOLDER

    def class_path(self, pom: Path) -> list[Path]:
        """The jars that a pom asks for, with all that they need."""
        made = self._made_of(pom, ".classpath")
        if not made.exists():
            self._maven(pom, "build-classpath", f"-Dmdep.outputFile={made}.part")
            made.with_name(f"{made.name}.part").rename(made)
        return [Path(each) for each in made.read_text(encoding="utf-8").split(os.pathsep)]

    def unpacked(self, pom: Path) -> Path:
        """The folder with the contents of the archives that a pom asks for."""
        made = self._made_of(pom, "")
        if not made.exists():
            part = made.with_name(f"{made.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            where = (f"-DoutputDirectory={part}", f"-DmarkersDirectory={part / 'markers'}")
            self._maven(pom, "unpack-dependencies", "-DexcludeTransitive=true", *where)
            part.rename(made)
        return made

    def python(self, name: str, *requirements: str) -> Path:
        """The Python of a virtual environment with these packages."""
        made = self.folder / f"{name}-{crc32(' '.join(requirements).encode()):08x}"
        python = made / "bin" / "python"
        if not (made / "complete").exists():
            print(f"{name}: installing {', '.join(requirements)}", flush=True)
            _run([sys.executable, "-m", "venv", "--clear", str(made)])
            _run([str(python), "-m", "pip", "install", "--quiet", *requirements])
            (made / "complete").touch()
        return python

    def classes(self, sources: Path, class_path: Sequence[Path]) -> Path:
        """The folder of compiled Java sources."""
        if shutil.which("javac") is None:
            raise Missing("javac is not on PATH: install a JDK of version 17 or newer")
        files = sorted(map(str, sources.rglob("*.java")))
        made = self.folder / f"{sources.parent.name}.classes"
        shutil.rmtree(made, ignore_errors=True)
        _run(["javac", "-d", str(made), "-cp", join(class_path), *files])
        return made

    def _made_of(self, pom: Path, ending: str) -> Path:
        """Where what a pom asks for goes; a changed pom has another place."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f"{pom.parent.name}-{crc32(pom.read_bytes()):08x}{ending}"

    def _maven(self, pom: Path, goal: str, *options: str) -> None:
        for command in ("mvn", "java"):
            if shutil.which(command) is None:
                raise Missing(
                    f"{command} is not on PATH: install Maven and a JDK of version 17 or newer"
                )
        print(f"{pom.parent.name}: fetching what {pom.name} asks for", flush=True)
        repository = f"-Dmaven.repo.local={self.folder / 'maven'}"
        _run(["mvn", "-B", "-q", "-f", str(pom), repository, f"{PLUGIN}:{goal}", *options])


def join(class_path: Sequence[Path]) -> str:
    """A class path as Java takes it."""
    return os.pathsep.join(map(str, class_path))


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()
        first = next((line for line in said if "ERROR" in line), said[-1] if said else "")
        raise Missing(f"{Path(command[0]).name} failed: {first}")
