"""Keep the classes of Spark in an archive, with which a JVM starts in two thirds of the time.

It is made once for a `.venv`, before the slow tests, which start dozens of JVMs:
`python -m tests.harness.processes.spark_classes`. Without one they only take longer.
"""

import os
import tempfile
import warnings
from pathlib import Path

from penstock.errors import Unavailable
from penstock.runner.session import Session
from penstock.settings.sections import Cluster
from tests.harness.processes.java_options import ARCHIVE, BRIEF


def make_archive(archive: Path) -> None:
    """Have a JVM load what jobs need, and write it down as it ends."""
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        new = Path(folder) / archive.name
        os.environ["SPARK_SUBMIT_OPTS"] = f"{BRIEF} -XX:ArchiveClassesAtExit={new}"
        session = Session("classes", Cluster(master="local[2,4]"), Path(folder))
        spark = session.engine(lambda: None).spark
        spark.sql("SELECT id % 3 AS k, count(*) AS n FROM range(100) GROUP BY 1").toArrow()
        java = spark.sparkContext._gateway.proc
        java.terminate()
        java.wait()
        new.rename(archive)


if __name__ == "__main__" and not ARCHIVE.exists() and " " not in str(ARCHIVE):
    warnings.filterwarnings("ignore", "lance is not fork-safe")
    try:
        make_archive(ARCHIVE)
    except (OSError, Unavailable) as error:
        print(f"no archive of Spark's classes, JVMs will start slowly: {error}")
