"""The demo's output: steps with their times, and figures that are checked as they are printed."""

import time
from dataclasses import dataclass, field
from typing import Any

import click

MARK = {True: ("ok", "green"), False: ("WRONG", "red")}


@dataclass
class StepPrinter:
    """Prints the steps, and collects figures that are wrong."""

    started: float = field(default_factory=time.monotonic)
    checks: int = 0
    wrong: list[str] = field(default_factory=list)

    def say(self, what: str, text: str) -> None:
        """Print one line: the second, the subject, and what happened."""
        clock = click.style(f"{time.monotonic() - self.started:5.1f} s", dim=True)
        click.echo(f"{clock}  {click.style(f'{what:<9}', bold=True)} {text}")

    def check(self, what: str, found: Any, wanted: Any) -> None:
        """Note a figure that is not as expected."""
        self.checks += 1
        if found != wanted:
            self.wrong.append(f"{what}: {found!r} instead of {wanted!r}")

    def sum_up(self) -> None:
        """Print the verdict; raises when a figure was wrong."""
        text, colour = MARK[not self.wrong]
        seconds = time.monotonic() - self.started
        right = self.checks - len(self.wrong)
        click.echo()
        click.echo(
            f"{click.style(text, fg=colour)}: {right} of {self.checks} figures are right, "
            f"after {seconds:.0f} s"
        )
        for line in self.wrong:
            click.echo(f"  {line}")
