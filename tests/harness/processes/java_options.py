"""What the JVMs of tests are started with, so that they start quickly."""

from pathlib import Path

from tests.harness.root import ROOT

# Their JVMs live for seconds or minutes: compiling code a second time, and better, takes longer
# than it saves.
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# The classes of Spark, as `spark_classes` keeps them; a JVM that they do not fit loads its own.
ARCHIVE = ROOT / ".venv" / "spark-classes.jsa"


def list_java_options(archive: Path = ARCHIVE) -> str:
    """The options, with the archive if there is one."""
    # Spark takes them apart at spaces.
    if not archive.exists() or " " in str(archive):
        return BRIEF
    return f"{BRIEF} -XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"
