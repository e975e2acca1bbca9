"""Counting which frameworks really trained: where they are promised, silence is a failure."""

from __future__ import annotations

import os

import pytest

from tests.process.conftest import durable, program, root

__all__ = ["durable", "program", "root"]

#: So many frameworks must have trained, or the session fails (set where they are installed).
LEAST = int(os.environ.get("CKPTSYNCD_TEST_LEAST_FRAMEWORKS", "0"))


class Counted:
    """The frameworks whose tests passed."""

    def __init__(self) -> None:
        """Begin with none."""
        self.names: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that passed, also in another process."""
        if report.when == "call" and report.passed:
            self.names |= {str(value) for key, value in report.user_properties if key == "trained"}

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail where too few trained."""
        is_worker = hasattr(session.config, "workerinput")
        if len(self.names) < LEAST and not is_worker and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say which trained."""
        names = ", ".join(sorted(self.names)) or "none"
        terminalreporter.write_line(f"frameworks that trained: {names} (at least {LEAST} must)")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count where a number is asked for."""
    if LEAST:
        config.pluginmanager.register(Counted(), "counted-frameworks")
