"""Rules and dashboard: judged by promtool, and evaluated on what a real Prometheus scraped."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from ckptsyncd.report.metrics_table import METRICS
from tests.process.program import Program, until
from tests.process.saving import MIB, trainer_checkpoint
from tests.servers import free_ports

PROJECT = Path(__file__).parent.parent.parent
RULES = PROJECT / "docker" / "prometheus" / "ckptsyncd.rules.yaml"
TESTS = PROJECT / "docker" / "prometheus" / "ckptsyncd.rules.test.yaml"
BOARD = PROJECT / "docker" / "grafana" / "dashboards" / "ckptsyncd.json"
RUNBOOK = PROJECT / "docs" / "runbook.md"

#: What a calm daemon with one safe checkpoint does not have.
ABSENT_WHEN_CALM = {
    "ckptsyncd_credentials_expiry_timestamp_seconds",
    "ckptsyncd_drain_bytes",
    "ckptsyncd_drain_lost_bytes",
    "ckptsyncd_estimated_cost_total",
    "ckptsyncd_notice_deadline_timestamp_seconds",
    "ckptsyncd_slowed_to_hands",
    "ckptsyncd_store_failing_since_timestamp_seconds",
    "ckptsyncd_verified_broken_checkpoints",
    "ckptsyncd_verified_timestamp_seconds",
}

needs_prometheus = pytest.mark.skipif(
    shutil.which("promtool") is None or shutil.which("prometheus") is None,
    reason="needs prometheus and promtool (Debian: prometheus)",
)


def rules() -> list[dict[str, Any]]:
    """Return every alert."""
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def panels() -> list[dict[str, Any]]:
    """Return every panel of the dashboard."""
    found: list[dict[str, Any]] = json.loads(BOARD.read_text())["panels"]
    return found


def queries() -> dict[str, str]:
    """Return every query of the dashboard by panel, as Grafana sends it with everything chosen."""
    found = {}
    for panel in panels():
        for target in panel["targets"]:
            text = target["expr"].replace("$instance", ".*").replace("$series", ".*")
            found[f"{panel['title']} {target['refId']}"] = text.replace("$__rate_interval", "1m")
    return found


def names_in(expression: str) -> set[str]:
    """Return the names of ours that a query uses."""
    return set(re.findall(r"ckptsyncd_\w+", expression))


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Ask Prometheus' own judge."""
    command = ["promtool", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


EXPOSED = {metric.exposed for metric in METRICS if metric.kind != "histogram"} | {
    f"{metric.exposed}_{part}"
    for metric in METRICS
    if metric.kind == "histogram"
    for part in ("bucket", "sum", "count")
}


def test_only_metrics_that_exist_are_used() -> None:
    """Neither an alert nor a panel asks for a name that the program does not expose."""
    asked = [rule["expr"] for rule in rules()] + list(queries().values())
    asked += re.findall(r"label_values\((\w+)", BOARD.read_text())
    assert set().union(*map(names_in, asked)) <= EXPOSED


def test_every_alert_has_a_test_and_a_runbook() -> None:
    """No alert without an example that fires, and none without a section on what to do."""
    tested = {
        case["alertname"]
        for test in yaml.safe_load(TESTS.read_text())["tests"]
        for case in test["alert_rule_test"]
        if case["exp_alerts"]
    }
    named = {rule["alert"] for rule in rules()}
    assert tested == named
    sections = re.findall(r"^## (Ckptsyncd\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    assert set(sections) == named
    for rule in rules():
        assert rule["annotations"]["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}"


@needs_prometheus
def test_rules_do_what_they_say(tmp_path: Path) -> None:
    """The rules' own tests pass, and do not if a limit is another one."""
    done = promtool("test", "rules", str(TESTS))
    assert done.returncode == 0, done.stdout + done.stderr
    changed = RULES.read_text().replace("behind_seconds > 900", "behind_seconds > 90")
    (tmp_path / RULES.name).write_text(changed)
    shutil.copy(TESTS, tmp_path)
    assert promtool("test", "rules", str(tmp_path / TESTS.name)).returncode == 1


@needs_prometheus
def test_the_configuration_is_clean() -> None:
    """Prometheus accepts the configuration of the compose file, with the rules in it."""
    done = promtool("check", "config", str(RULES.parent / "prometheus.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running Prometheus on the loopback address."""

    port: int

    def ask(self, path: str, **parameters: str) -> Any:
        """Return what its API answers."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.loads(answer.read())["data"]

    def value(self, expression: str) -> list[Any]:
        """Return the samples of an expression now."""
        found: list[Any] = self.ask("query", query=expression)["result"]
        return found

    def answers(self) -> bool:
        """Return whether it serves yet."""
        try:
            self.ask("status/buildinfo")
        except OSError:
            return False
        return True


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Run daemon and Prometheus until two saves were scraped a few times."""
    base = tmp_path_factory.mktemp("scraped")
    ports = free_ports(2)
    options = ("--metrics-port", str(ports[0]), "--notice-file", str(base / "notice"))
    daemon = Program(base / "root", f"file://{base}/durable", base / "daemon", options).start()
    config = yaml.safe_load((RULES.parent / "prometheus.yaml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(RULES)]
    config["scrape_configs"][0]["static_configs"] = [{"targets": [f"127.0.0.1:{ports[0]}"]}]
    (base / "prometheus.yaml").write_text(yaml.safe_dump(config))
    with (base / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={base / 'prometheus.yaml'}",
                f"--storage.tsdb.path={base / 'data'}",
                f"--web.listen-address=127.0.0.1:{ports[1]}",
            ],
            stdout=log,
            stderr=log,
        )
    one = Prometheus(ports[1])
    try:
        until(one.answers, "Prometheus answers")
        for step in (1, 2):
            # Large enough for the link's speed to be measured.
            trainer_checkpoint(base / "root", step, 8 * MIB)
            daemon.until_safe(f"checkpoint-{step}")
            until(lambda s=step: _step(one) == s, f"step {step} is scraped")  # type: ignore[misc]
        counted = "count_over_time(ckptsyncd_build_info[1m]) > 5"
        until(lambda: one.value(counted), "it was scraped a few times")
        yield one
    finally:
        process.terminate()
        process.wait(30)
        daemon.kill()


def _step(one: Prometheus) -> float:
    found = one.value("ckptsyncd_recovery_point_step")
    return float(found[0]["value"][1]) if found else -1.0


@needs_prometheus
@pytest.mark.parametrize("panel", queries())
def test_every_panel_shows_something(scraped: Prometheus, panel: str) -> None:
    """Each query of the dashboard finds data in what was scraped from a daemon at work."""
    assert scraped.value(queries()[panel]), queries()[panel]


@needs_prometheus
def test_every_metric_arrives(scraped: Prometheus) -> None:
    """Prometheus took everything that the table names, but for what a calm daemon does not have."""
    known = set(scraped.ask("label/__name__/values"))
    assert EXPOSED - known == ABSENT_WHEN_CALM


@needs_prometheus
def test_a_daemon_at_work_alarms_nobody(scraped: Prometheus) -> None:
    """All rules are evaluated without an error, and none fires or is about to."""
    until(
        lambda: all(rule["health"] == "ok" for rule in _loaded(scraped)),
        "every rule was evaluated",
    )
    assert [rule["name"] for rule in _loaded(scraped)] == [rule["alert"] for rule in rules()]
    assert [rule["name"] for rule in _loaded(scraped) if rule["state"] != "inactive"] == []


def _loaded(one: Prometheus) -> list[dict[str, Any]]:
    (group,) = one.ask("rules")["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found
