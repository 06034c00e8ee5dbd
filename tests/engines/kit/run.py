"""Iceberg's compatibility kit: its own tests of views and of tables, with its Java client."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from tests.engines.cache import join
from tests.engines.checks import shorten
from tests.engines.place import Place
from tests.engines.results import Outcome, Result

HERE = Path(__file__).parent
POM, SOURCES, EXPECTED = HERE / "pom.xml", HERE / "java", HERE / "expected.json"
SUITES = ("Views", "Tables")
MINUTES = 10


@dataclass(frozen=True)
class Outcomes:
    """What came of the tests of one class: how many passed, and why the others did not."""

    passed: int
    failed: Mapping[str, str]
    skipped: Mapping[str, str]


def run(place: Place) -> Iterator[Result]:
    """Both classes of tests, judged by the failures that are expected."""
    expected = read_expected()
    reports = _launch(place)
    for suite in SUITES:
        yield from judge(suite, read_outcomes(reports, suite), expected.get(suite, {}))


def versions(place: Place) -> dict[str, str]:
    [core] = [each for each in place.cache.class_path(POM) if is_core(each)]
    return {"iceberg-core, tests": core.parent.name}


def is_core(jar: Path) -> bool:
    return jar.name.startswith("iceberg-core-") and not jar.stem.endswith("-tests")


def read_expected() -> dict[str, dict[str, str]]:
    """The tests that are known to fail, by class, and why."""
    return msgspec.json.decode(EXPECTED.read_bytes(), type=dict[str, dict[str, str]])


def _launch(place: Place) -> Path:
    """Run both; returns JUnit's report. Tests that fail are no reason to raise."""
    jars = place.cache.class_path(POM)
    classes = place.cache.classes(SOURCES, jars)
    reports = place.folder / "reports"
    options = {
        # The tests put views and tables there.
        "java.io.tmpdir": place.outside,
        "client.uri": place.iceberg,
        "org.slf4j.simpleLogger.defaultLogLevel": "error",
    }
    command = ["java", "-XX:TieredStopAtLevel=1", "-Xmx1g"]
    command += [f"-D{name}={value}" for name, value in options.items()]
    command += ["-cp", join([classes, *jars]), "org.junit.platform.console.ConsoleLauncher"]
    command += ["execute", "--include-engine=junit-jupiter", "--details=none", "--disable-banner"]
    command += [f"--select-class=penstock.kit.{suite}" for suite in SUITES]
    command += [f"--reports-dir={reports}"]
    with place.log.open("w") as log:
        subprocess.run(
            command, stdout=log, stderr=subprocess.STDOUT, timeout=60 * MINUTES, check=False
        )
    return reports / "TEST-junit-jupiter.xml"


def read_outcomes(report: Path, suite: str) -> Outcomes:
    """What JUnit's report says of one class; a test that is repeated counts each time."""
    passed = 0
    failed, skipped = dict[str, str](), dict[str, str]()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.get("classname", "").rpartition(".")[2] != suite:
            continue
        name = case.get("name", "").removesuffix("()")
        for kind, where in (("failure", failed), ("error", failed), ("skipped", skipped)):
            if (found := case.find(kind)) is not None:
                where[name] = _say(found)
                break
        else:
            passed += 1
    return Outcomes(passed, failed, skipped)


def _say(found: ElementTree.Element) -> str:
    """The reason, without its trace; of a test that is skipped, what it is only valid for."""
    text = (found.get("message") or found.text or found.get("type") or "").partition("\tat ")[0]
    if only := re.search(r"assumption was not met due to: \[(.*?)\]", text):
        return only[1]
    return shorten(text)


def judge(suite: str, outcomes: Outcomes, expected: Mapping[str, str]) -> Iterator[Result]:
    """A line for the whole class, and one for each test that did not pass."""
    count = outcomes.passed + len(outcomes.failed) + len(outcomes.skipped)
    told = f"{outcomes.passed} of {count} passed, {len(outcomes.failed)} failed"
    told += f", {len(outcomes.skipped)} skipped by the kit"
    unexpected = outcomes.failed.keys() - expected.keys()
    gone = expected.keys() - outcomes.failed.keys()
    sound = outcomes.passed > 0 and not unexpected and not gone
    yield Result(suite, Outcome.WORKS if sound else Outcome.FAILS, told)
    for name, said in outcomes.failed.items():
        if name in expected:
            yield Result(f"{suite}.{name}", Outcome.LIMIT, expected[name])
        else:
            yield Result(f"{suite}.{name}", Outcome.FAILS, said)
    for name in sorted(gone):
        note = f"passes now: take it out of {EXPECTED.name}"
        yield Result(f"{suite}.{name}", Outcome.FAILS, note)
    for name, said in outcomes.skipped.items():
        yield Result(f"{suite}.{name}", Outcome.LIMIT, f"skipped by the kit: {said}")
