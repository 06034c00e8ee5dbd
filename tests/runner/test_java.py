"""The Java that Spark runs on: which one is taken, why, and that Spark starts with it."""

import subprocess
from pathlib import Path

import pytest

from penstock.runner.java import OLDEST, VECTOR_MODULE, find_java, point_spark_at, read_version


def fake_java(home: Path, version: str) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("no version", None),
    ],
)
def test_the_version_of_java(text: str, version: int | None) -> None:
    assert read_version(text) == version


def test_java_home_comes_first(tmp_path: Path) -> None:
    named, other = fake_java(tmp_path / "a", "17.0.1"), fake_java(tmp_path / "b", "21")
    environ = {"JAVA_HOME": str(tmp_path / "a"), "PATH": str(other.parent)}
    found = find_java(environ)
    assert (found.executable, found.version, found.why) == (named, 17, "named by JAVA_HOME")
    point_spark_at(found, tmp_path, environ)
    assert environ["JAVA_HOME"] == str(tmp_path / "a")


def test_an_old_java_home_is_passed_over_for_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "a", "11.0.2")
    other = fake_java(tmp_path / "b", "21")
    environ = {"JAVA_HOME": str(tmp_path / "a"), "PATH": str(other.parent)}
    found = find_java(environ)
    assert (found.executable, found.version) == (other, 21)
    assert f"JAVA_HOME, {tmp_path / 'a'}, is version 11" in found.why
    point_spark_at(found, tmp_path, environ)
    assert "JAVA_HOME" not in environ


def test_a_machine_without_java_has_the_packaged_one(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8.0_392")
    found = find_java({"PATH": str(old.parent)})
    assert found.lacks_vector
    assert found.version >= OLDEST
    assert found.why == f"the packaged one; {old} on PATH is version 8"


def test_a_java_that_lacks_the_module_is_started_without_it(tmp_path: Path) -> None:
    java = fake_java(tmp_path / "a", "21.0.2")
    told = java.read_text()
    refusal = f'case "$*" in *{VECTOR_MODULE}*) echo "Module not found"; exit 1;; esac'
    java.write_text(told.replace("\n", f"\n{refusal}\n", 1))
    environ = {"JAVA_HOME": str(tmp_path / "a"), "PATH": ""}
    found = find_java(environ)
    assert (found.version, found.lacks_vector) == (21, True)
    point_spark_at(found, tmp_path, environ)
    wrapped = [f"{environ['JAVA_HOME']}/bin/java", VECTOR_MODULE, "-version"]
    assert subprocess.run(wrapped, check=False).returncode == 0


def test_the_packaged_java_starts_without_the_module_that_it_lacks(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path)}
    found = find_java(environ)
    point_spark_at(found, tmp_path / "it's here", environ)
    java = Path(environ["JAVA_HOME"], "bin", "java")
    bare = subprocess.run(
        [found.executable, VECTOR_MODULE, "-version"], capture_output=True, check=False
    )
    assert bare.returncode != 0, "the packaged Java has the module: the wrapper can go"
    shown = subprocess.run(
        [java, VECTOR_MODULE, "-Da=b c", "-version"], capture_output=True, check=True
    )
    assert read_version(shown.stderr.decode()) == found.version
