"""`penstock.connect()` without an address: servers that are found, started, and end in time."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import penstock
from penstock.errors import InvalidRequest, Unavailable
from penstock.sdk.connection.server_note import FILE, ServerNote, find
from tests.harness.processes import servers
from tests.harness.processes.waiting import until

SCRIPT = """
import sys, penstock
lake = penstock.connect(runner=False, keep={keep})
print(lake.url, flush=True)
sys.stdin.read()
"""


def start(folder: Path, keep: bool = False) -> "subprocess.Popen[str]":
    """A program that connects, tells the address and waits."""
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(keep=keep)],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def told(program: "subprocess.Popen[str]") -> str:
    assert program.stdout is not None
    return program.stdout.readline().strip()


def note(folder: Path) -> ServerNote:
    content = (folder / "penstock-data" / FILE).read_bytes()
    return msgspec.json.decode(content, type=ServerNote)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_two_programs_share_a_server_that_ends_with_the_first(tmp_path: Path) -> None:
    programs = [start(tmp_path), start(tmp_path)]
    addresses = [told(program) for program in programs]
    assert addresses[0] == addresses[1] == note(tmp_path).url
    assert addresses[0].startswith("http://127.0.0.1:")
    pid = note(tmp_path).pid
    for program in programs:
        program.communicate()
    until(lambda: is_gone(pid), "the server is still there")
    assert not (tmp_path / "penstock-data" / FILE).exists()


def test_a_server_ends_when_its_program_is_killed(tmp_path: Path) -> None:
    program = start(tmp_path)
    assert told(program)
    pid = note(tmp_path).pid
    program.kill()
    program.wait()
    until(lambda: is_gone(pid), "the server is still there")
    # What a dead server left behind is not taken for one.
    assert find(tmp_path / "penstock-data") is None


def test_a_server_may_stay(tmp_path: Path) -> None:
    program = start(tmp_path, keep=True)
    address = told(program)
    program.communicate()
    found = find(tmp_path / "penstock-data")
    assert found is not None
    assert found.url == address
    with penstock.connect(data=tmp_path / "penstock-data") as lake:
        assert lake.url == address
        assert lake.namespaces() == []
    os.kill(found.pid, signal.SIGTERM)
    until(lambda: is_gone(found.pid), "the server is still there")


def test_a_server_that_somebody_started_is_found(tmp_path: Path) -> None:
    with (
        servers.running(tmp_path / "data") as server,
        penstock.connect(data=tmp_path / "data") as lake,
    ):
        assert lake.url == server.url
    assert not (tmp_path / "data" / FILE).exists()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "catalog.sqlite").mkdir()
    with pytest.raises(Unavailable, match=r"did not start: penstock: .*catalog\.sqlite"):
        penstock.connect(data=tmp_path, runner=False)
    with pytest.raises(InvalidRequest, match="both url and data"):
        penstock.connect("http://127.0.0.1:1", data=tmp_path)


def test_a_folder_sends_nobody_to_another_machine(tmp_path: Path) -> None:
    running = ServerNote("http://192.0.2.1:2333", os.getpid())
    (tmp_path / FILE).write_bytes(msgspec.json.encode(running))
    assert find(tmp_path) is None


def test_a_key_with_letters_that_no_key_has_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="letters that no key has"):
        penstock.connect("http://127.0.0.1:9", api_key="schlüssel")
