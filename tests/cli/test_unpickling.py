"""The server and the runner unpickle nothing, whichever library is asked to."""

import ast
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.lance.write.uploads import RowStream
from tests.harness.data.arrow import to_stream
from tests.harness.processes import servers
from tests.harness.processes.runners import start_runner
from tests.harness.processes.waiting import until

SOURCES = Path(penstock.__file__).parent
LOADERS = {
    "pickle": "pickle.loads(bomb)",
    "pickle, in Python": "pickle._loads(bomb)",
    "pickle of a file": "pickle.load(io.BytesIO(bomb))",
    "cloudpickle": "cloudpickle.loads(bomb)",
    "PySpark": "pyspark.serializers.CPickleSerializer().loads(bomb)",
    "PySpark, broadcast": "pyspark.Broadcast.load(object(), io.BytesIO(bomb))",
    "NumPy": "numpy.load(io.BytesIO(bomb), allow_pickle=True)",
    "pandas": "pandas.read_pickle(io.BytesIO(bomb))",
    "multiprocessing": "multiprocessing.reduction.ForkingPickler.loads(bomb)",
    "shelve": "shelve.Shelf({b'x': bomb})['x']",
}
SCRIPT = """
import io, multiprocessing.reduction, os, pickle, shelve, sys
import cloudpickle, numpy, pandas, pyspark, pyspark.serializers
from penstock.cli.unpickling import refuse_pickles

class Bomb:
    def __reduce__(self):
        return os.mkdir, (sys.argv[1],)

bombs = [pickle.dumps(Bomb(), protocol) for protocol in range(6)]
refuse_pickles()
for bomb in bombs:
    for loader in sys.argv[2:]:
        try:
            eval(loader)
        except pickle.UnpicklingError as error:
            assert "not read here" in str(error.__cause__ or error), (loader, error)
        else:
            sys.exit(f"{loader} read a pickle")
print(pickle.loads(pickle.dumps([1, "a", None, {"b": 2.5}])))
"""
# Put in front of a program of ours: it tries every tenth of a second, and tells when it no longer
# can.
TRYING = """
import os, pickle, threading, time
def attempt():
    bomb = pickle.dumps(os.getpid)
    while True:
        time.sleep(0.1)
        try:
            pickle.loads(bomb)
        except pickle.UnpicklingError:
            open(os.environ["REFUSED"], "w").close()
            return
if "REFUSED" in os.environ:
    threading.Thread(target=attempt, daemon=True).start()
"""
# The workers' part is where functions are unpickled, and the SDK's where they are pickled.
ALLOWED = {
    "jobs/functions/load.py": {"pickle", "cloudpickle"},
    "jobs/functions/foreign.py": {"pickle"},
    # Functions that came as source text, in workers as well.
    "jobs/functions/source.py": {"exec"},
    "cli/unpickling.py": {"pickle"},
    # A function of that name, which only packs.
    "sdk/functions/packing.py": {"pickle"},
}
MODULES = {"pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "copyreg"}
CALLS = {"eval", "exec", "read_pickle", "register_extension_type"}
KEYWORDS = {"allow_pickle"}


def test_no_library_reads_a_pickle(tmp_path: Path) -> None:
    target = tmp_path / "boom"
    command = [sys.executable, "-c", SCRIPT, str(target), *LOADERS.values()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[1, 'a', None, {'b': 2.5}]\n"
    assert not target.exists()


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "sitecustomize.py").write_text(TRYING)
    return {"PYTHONPATH": str(tmp_path), "REFUSED": str(tmp_path / "refused")}


def test_a_server_unpickles_nothing(tmp_path: Path, environ: dict[str, str]) -> None:
    with servers.running(tmp_path / "data", environ=environ):
        until(Path(environ["REFUSED"]).exists, "the server would read a pickle")


def test_a_runner_unpickles_nothing(tmp_path: Path, environ: dict[str, str]) -> None:
    cold = {"PENSTOCK__RUNNER__WARM": "false"}
    runner = start_runner("http://127.0.0.1:9", tmp_path / "data", environ=environ | cold)
    try:
        until(Path(environ["REFUSED"]).exists, "the runner would read a pickle")
    finally:
        runner.kill()


def test_a_type_in_an_upload_is_no_pickle(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "boom"),)

    extension = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": pickle.dumps(Bomb()),
    }
    field = pa.field("x", pa.int64(), metadata=extension)
    stream = RowStream(to_stream(pa.table([[1]], schema=pa.schema([field], {"pandas": b"\x80"}))))
    assert (stream.count_rows(), stream.schema.field("x").type) == (1, pa.int64())
    assert not (tmp_path / "boom").exists()


def names_of(path: Path) -> Iterator[str]:
    """What a module of ours uses that can turn bytes into code."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from (name.name.split(".")[0] for name in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (module.split(".")[0], *(name.name for name in names))
            case ast.Call(func=ast.Name(id=name)):
                yield name
            case ast.Call(func=ast.Attribute(attr=name)) if name not in ("eval", "exec"):
                yield name
            case ast.keyword(arg=str(name)):
                yield name


def test_only_workers_have_code_that_unpickles() -> None:
    found = {}
    for path in SOURCES.rglob("*.py"):
        used = (MODULES | CALLS | KEYWORDS) & set(names_of(path))
        if used:
            found[path.relative_to(SOURCES).as_posix()] = used
    assert found == ALLOWED


def test_the_walk_finds_what_it_looks_for(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("def f():\n    from pickle import loads\n    np.load(x, allow_pickle=True)\n")
    assert {"pickle", "allow_pickle"} <= set(names_of(path))
