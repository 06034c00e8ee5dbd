"""What engines' results are judged by: no engine, no server."""

from pathlib import Path

from tests.engines.checks import Check, Refused, carry_out
from tests.engines.kit.run import Outcomes, judge, read_outcomes
from tests.engines.results import Outcome, Result

REPORT = """\
<testsuite>
  <testcase name="good()" classname="penstock.kit.Views"/>
  <testcase name="bad(boolean)[1]" classname="penstock.kit.Views">
    <failure message="was not there" type="X">long</failure>
  </testcase>
  <testcase name="worse()" classname="penstock.kit.Views"><error>X: boom
	at some.Place(Some.java)</error></testcase>
  <testcase name="none()" classname="penstock.kit.Views">
    <skipped>X: assumption was not met due to: [Only valid for others]</skipped>
  </testcase>
  <testcase name="good()" classname="penstock.kit.Tables"/>
</testsuite>
"""


def outcomes_of(*failed: str) -> Outcomes:
    return Outcomes(passed=3, failed=dict.fromkeys(failed, "said no"), skipped={})


def kit_outcomes(outcomes: Outcomes, **expected: str) -> dict[str, Outcome]:
    return {each.operation: each.outcome for each in judge("Views", outcomes, expected)}


def test_a_failure_that_is_expected_is_a_limit() -> None:
    found = kit_outcomes(outcomes_of("bad"), bad="known")
    assert found == {"Views": Outcome.WORKS, "Views.bad": Outcome.LIMIT}


def test_a_failure_that_is_not_expected_fails() -> None:
    found = kit_outcomes(outcomes_of("bad"))
    assert found == {"Views": Outcome.FAILS, "Views.bad": Outcome.FAILS}


def test_a_pass_that_is_not_expected_fails() -> None:
    found = kit_outcomes(outcomes_of(), bad="known")
    assert found == {"Views": Outcome.FAILS, "Views.bad": Outcome.FAILS}


def test_a_class_of_which_nothing_ran_fails() -> None:
    assert kit_outcomes(Outcomes(0, {}, {})) == {"Views": Outcome.FAILS}


def test_the_report_of_the_kit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(REPORT)
    found = read_outcomes(path, "Views")
    assert found.passed == 1
    assert found.failed == {"bad(boolean)[1]": "was not there", "worse": "X: boom"}
    assert found.skipped == {"none": "Only valid for others"}


def refuse() -> None:
    raise Refused("there is no such thing\nin this engine")


def test_operations_are_judged_by_what_was_expected_of_them() -> None:
    checks = [
        Check("a", lambda: None),
        Check("b", refuse),
        Check("c", refuse, limit="no such", reason="it has none"),
        Check("d", refuse, limit="another"),
        Check("e", lambda: None, limit="no such"),
    ]
    assert list(carry_out(checks)) == [
        Result("a", Outcome.WORKS),
        Result("b", Outcome.FAILS, "there is no such thing in this engine"),
        Result("c", Outcome.LIMIT, "it has none"),
        Result("d", Outcome.FAILS, "there is no such thing in this engine"),
        Result("e", Outcome.FAILS, "works now: take its limit away"),
    ]
