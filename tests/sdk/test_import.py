"""Importing the SDK is quick, and loads nothing that only some calls need."""

import subprocess
import sys

import penstock

HEAVY = ("pyarrow", "lance", "lancedb", "pandas", "polars", "pyiceberg", "numpy", "cloudpickle")
NOT_OURS = ("penstock.server", "penstock.catalog", "penstock.lance", "penstock.settings")


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=110
    )
    return done.stdout.strip()


def test_the_package_alone_imports_nothing() -> None:
    assert run("import sys, penstock; print([n for n in sys.modules if 'penstock.' in n])") == "[]"


def test_the_sdk_loads_no_data_libraries_and_nothing_of_the_server() -> None:
    names = ", ".join(f"penstock.{name}" for name in penstock.__all__)
    code = (
        f"import sys, penstock; {names}; "
        f"print([n for n in {HEAVY + NOT_OURS!r} if n in sys.modules])"
    )
    assert run(code) == "[]"


def test_the_package_is_there_within_its_time() -> None:
    # In the process's own time, of which it takes a twentieth: a busy machine does not matter.
    clock = "time.process_time()"
    code = f"import time; start = {clock}; import penstock; print({clock} - start)"
    assert float(run(code)) < 0.3


def test_every_public_name_is_there_and_listed() -> None:
    assert all(hasattr(penstock, name) for name in penstock.__all__)
    assert set(penstock.__all__) <= set(dir(penstock))
    assert not hasattr(penstock, "nothing")
