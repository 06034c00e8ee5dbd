"""The Dockerfile's steps, done in a folder of the test's own, without Docker.

Absolute paths of the image lie below that folder. What is not done: fetching the base image, and
making the image's user, for whom the test's own user stands in.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness.root import ROOT

# The folders of the image that its steps and compose.yaml name.
PLACES = re.compile(r"(?<![\w./*])/(src|wheels|opt/penstock|data|lake|keys)(?=[/\s:;&\"'*]|$)")


def read_steps(text: str) -> Iterator[tuple[str, str]]:
    """The instructions of a Dockerfile and what they say."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            instruction, _, rest = line.partition(" ")
            yield instruction, rest.strip()


@dataclass
class Image:
    """What the steps have made: a folder, an environment, and what is started in it."""

    root: Path
    environ: dict[str, str] = field(default_factory=dict)
    workdir: Path = Path()
    user: str = "root"
    start: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def place(self, text: str, volumes: Mapping[str, Path] | None = None) -> str:
        """The text with each path of the image replaced by where it lies here."""
        found = volumes or {}
        return PLACES.sub(lambda m: str(found.get(m[0]) or self.root / m[1]), text)

    def build(self) -> None:
        for instruction, rest in read_steps((ROOT / "Dockerfile").read_text(encoding="utf-8")):
            self._do(instruction, rest)

    def _do(self, instruction: str, rest: str) -> None:
        match instruction:
            case "FROM" | "ARG":
                self.left_out.append(f"{instruction} {rest}")
            case "WORKDIR":
                self.workdir = Path(self.place(rest))
                self.workdir.mkdir(parents=True, exist_ok=True)
            case "COPY":
                self._copy(shlex.split(rest))
            case "RUN" if rest.startswith("useradd"):
                self.left_out.append(f"RUN {rest}")
            case "RUN":
                self._run(rest)
            case "ENV":
                name, _, value = rest.partition("=")
                self.environ[name] = self.place(value)
            case "USER":
                self.user = rest
            case "ENTRYPOINT" | "CMD":
                self.start += json.loads(rest)
            case "HEALTHCHECK":
                self.health = json.loads(rest.partition(" CMD ")[2])
            case "VOLUME" | "EXPOSE":
                pass
            case _:
                raise AssertionError(f"the test does not know {instruction}")

    def _copy(self, words: list[str]) -> None:
        if words[0].startswith("--from"):
            return  # Both stages have the one folder here.
        *sources, target = words
        there = Path(self.place(target))
        for source in sources:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, there, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                there.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, there)

    def _run(self, command: str) -> None:
        mine = f"{os.getuid()}:{os.getgid()}"
        command = self.place(command).replace("penstock:penstock", mine)
        environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["/bin/sh", "-c", command], env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """What a program of the image sees: its own variables, and no Java but the packaged one."""
        hidden = self.root / "no-java"
        hidden.mkdir(exist_ok=True)
        (hidden / "java").write_text("#!/bin/sh\nexit 1\n")
        (hidden / "java").chmod(0o755)
        found = {**self.environ, **(more or {})}
        path = found["PATH"].replace("$PATH", f"{hidden}:/usr/bin:/bin")
        return {**found, "PATH": path, "HOME": str(self.root)}
