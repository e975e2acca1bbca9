"""The screen: what a person reads, and that no name can forge it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ckptsyncd.core.draining.drain_report import DrainReport, LeftBehind
from ckptsyncd.core.draining.drain_view import DrainPlanView, PlannedView, WouldFit
from ckptsyncd.core.facts import Notice
from ckptsyncd.core.snapshot import Snapshot, SourceView
from ckptsyncd.report.status import Style, lines, summary
from tests.report.examples import BUSY, CALM, DAEMON, GIB, NOW, SNAPSHOTS, view


def screen(snapshot: Snapshot, *, dead: str = "", **style: Any) -> str:
    """Return the screen as one text."""
    return "\n".join(lines(snapshot, DAEMON, now=NOW, style=Style(**style), dead=dead))


def test_a_disk_that_is_silent_and_a_loop_that_stands() -> None:
    """Neither looks like a quiet day: the screen says what nobody knows, and the line does too."""
    silent = replace(CALM, disk_failing="the disk has not answered 'scan' for 2 min")
    assert "the disk has not answered 'scan' for 2 min: what was saved since is not" in screen(
        silent
    )
    assert summary(silent, NOW).startswith("running: the disk has not answered 'scan' for 2 min; ")
    stands = replace(CALM, stands="the loop turned 31 s ago")
    first = "nothing moves, and what follows is old: the loop turned 31 s ago\n"
    assert screen(stands).startswith(first)


def test_a_busy_daemon() -> None:
    """One screen says what is safe, what is under way, what is at risk and how fast it goes."""
    assert screen(BUSY) == (
        "running: watching and uploading\n"
        "/data/run -> s3://bucket/run (pid 4242 on gpu-7, up 2 h 5 min)\n"
        "\n"
        "llama: step 4200 safe 38 s ago; step 4300 at 61 %, 12 s left\n"
        "  checkpoint-4400  writing     waiting for trainer_state.json; 10.0 GiB in 12 files\n"
        "  checkpoint-4300  uploading   61 %, 12 s left, 10.0 GiB in 12 files\n"
        "  checkpoint-4200  safe        10.0 GiB in 12 files, whole by marker\n"
        "  checkpoint-4100  safe        10.0 GiB in 12 files, whole by marker\n"
        "  and 1 safe, 1 superseded\n"
        "\n"
        "at risk: 3.9 GiB of 1 finished checkpoint, for 52 s\n"
        "rate: 341 MiB/s"
    )


def test_a_calm_daemon() -> None:
    """Where nothing is at risk the screen says so."""
    assert "at risk: nothing that is finished" in screen(CALM)
    assert "rate" not in screen(CALM)


def test_what_is_wrong_is_told() -> None:
    """Parked with reason and time, notice, polling, blind source, warnings, errors with counts."""
    snapshot = replace(
        BUSY,
        state="draining",
        reason="spot interruption",
        checkpoints=(
            view(4300, "parked", reason="truncated: model-2.safetensors", retry_at=NOW + 40),
            view(4200, "safe", edition=3),
        ),
        notice=Notice("aws", "x", "binding", 1.0, "spot interruption"),
        notice_deadline_at=NOW + 87,
        warnings=("the destination lies on the watch root's own disk",),
        last_error="HTTP 503",
        last_error_count=17,
        sources=(SourceView("aws", ""), SourceView("gcp", "connection refused")),
        polled=("nfs",),
        store_failing="HTTP 503 for 20 s",
    )
    text = screen(snapshot, width=150)
    for part in (
        "draining: spot interruption",
        "notice from aws: spot interruption, 1 min 27 s left",
        "parked      truncated: model-2.safetensors; 10.0 GiB in 12 files; tried again in 40 s",
        "checkpoint-4200 (edition 3)  safe",
        "store failing: HTTP 503 for 20 s",
        "last error (17 times in a row): HTTP 503",
        "warning: the destination lies on the watch root's own disk",
        "no notices from gcp: connection refused",
        "polled, because no events come: nfs",
    ):
        assert part in text, part
    assert "from aws: \n" not in text


def test_a_refusing_store_is_told_since_when() -> None:
    """Whoever looks sees that it is the credentials or a policy, for how long, and the answer."""
    refused = replace(
        BUSY,
        store_failing="put_object a: ExpiredToken (400)",
        failing_since=BUSY.taken_at - 300,
        failing_kind="refused",
        slowed_to=1,
    )
    found = screen(refused)
    assert "refused by the store for 5 min: put_object a: ExpiredToken (400)" in found
    assert "slowed down to 1 request at a time: the store asks for fewer" in found


def test_the_plan_of_a_drain_is_told_with_what_is_lost() -> None:
    """Names, bytes and the expected end of what fits, and each checkpoint that is given up."""
    plan = DrainPlanView(
        made_at=NOW,
        deadline_at=NOW + 30,
        chosen=(PlannedView("llama/checkpoint-4300", 1, "llama", 4300, 4 * GIB),),
        given_up=(PlannedView("llama/checkpoint-4400", 1, "llama", 4400, 9 * GIB, "does not fit"),),
        finish_at=NOW + 12,
        bytes_per_second=GIB / 3,
        doubt=0.1,
    )
    shown = screen(replace(BUSY, state="draining", drain_plan=plan))
    assert "plan: llama/checkpoint-4300 (4.0 GiB) will be safe in 12 s" in shown
    assert "given up: llama/checkpoint-4400, 9.0 GiB left: does not fit" in shown


def test_whether_a_notice_would_do_is_told_before_there_is_one() -> None:
    """On the first day one reads that 48 GiB do not fit into 30 s."""
    shown = screen(replace(CALM, would_fit_notice=WouldFit(False, 48 * GIB, 144.0, 30.0)))
    assert "a notice of 30 s would not do: 48.0 GiB need 2 min 24 s" in shown
    shown = screen(replace(CALM, would_fit_notice=WouldFit(True, GIB, 3.0, 30.0)))
    assert "a notice of 30 s would do: 1.0 GiB need 3.0 s" in shown
    shown = screen(replace(CALM, would_fit_notice=WouldFit(None, GIB, None, 30.0)))
    assert "not known yet whether 1.0 GiB fit a notice of 30 s" in shown
    assert "notice" not in screen(replace(CALM, would_fit_notice=WouldFit(True, 0, 0.0, 30.0)))


def test_a_dead_daemon_is_said_first() -> None:
    """The first line says that the daemon is dead, the second how old the rest is."""
    text = screen(replace(BUSY, taken_at=NOW - 185), dead="nobody answers on /run/x.sock")
    assert text.startswith(
        "the daemon is dead: nobody answers on /run/x.sock\n"
        "what follows is what it knew 3 min 5 s ago, when it was running\n"
    )
    assert "\n  ckptsyncd sync /data/run s3://bucket/run\n" in text


def test_of_a_dead_daemon_nothing_is_foretold() -> None:
    """What it had stored is told, and neither a rate nor when it would be done: nothing moves."""
    fits = replace(BUSY, would_fit_notice=WouldFit(True, GIB, 3.0, 30.0))
    text = screen(fits, dead="nobody answers")
    assert "step 4300 at 61 %\n" in text
    assert "at risk: 3.9 GiB" in text
    assert not [word for word in ("left", "rate", "a notice of") if word in text]


def test_the_last_error_is_told_once_with_its_count() -> None:
    """Where it is what the store fails with, one line says so, and how often."""
    failing = replace(
        BUSY,
        store_failing="HTTP 503",
        last_error="HTTP 503",
        last_error_count=17,
        failing_since=NOW,
    )
    assert screen(failing).count("HTTP 503") == 1
    assert "store failing for 0 s (17 times in a row): HTTP 503" in screen(failing)


def test_what_waits_is_said_in_the_headline() -> None:
    """A finished checkpoint that nobody uploads is named beside the recovery point."""
    parked = replace(BUSY, checkpoints=(view(4300, "parked"), view(4200, "safe")))
    assert "llama: step 4200 safe 38 s ago; step 4300 parked" in screen(parked)
    settled = replace(BUSY, checkpoints=(view(4300, "settled"), view(4200, "safe")))
    assert summary(settled, NOW).endswith("step 4200 safe 38 s ago; step 4300 waits for its turn")


def test_how_the_last_drain_ended_stays_on_the_screen() -> None:
    """Afterwards one reads what it did and, by name, what it left behind."""
    left = LeftBehind("llama/checkpoint-4400", "llama", 1, 4400, 9 * GIB, GIB, "does not fit")
    report = DrainReport("aws", "n", "spot", "deadline", NOW - 100, NOW - 10, NOW, left=(left,))
    text = screen(replace(CALM, last_drain=report))
    assert "last drain, 10 s ago: the time was up, after 1 min 30 s" in text
    assert "left behind: llama/checkpoint-4400, 8.0 GiB missing: does not fit" in text
    assert "everything finished became safe" in screen(
        replace(CALM, last_drain=replace(report, outcome="drained", left=()))
    )


def test_a_sweep_of_many_runs_is_one_screen() -> None:
    """The newest runs and those with work at risk have rows, the others are counted."""
    safe = tuple(
        view(1, "safe", series=f"run-{number}", checkpoint=f"run-{number}/1", saved_at=NOW - number)
        for number in range(300)
    )
    parked = view(9, "parked", series="run-299", checkpoint="run-299/9", saved_at=NOW - 299)
    text = screen(replace(CALM, recovery_points=(), checkpoints=(*safe, parked)))
    assert len(text.splitlines()) < 35
    assert "run-299: nothing safe yet; step 9 parked" in text
    assert "and 293 more series, nothing of them at risk" in text
    risky = tuple(replace(one, state="settled", at_risk=True) for one in safe)
    text = screen(replace(CALM, checkpoints=risky))
    assert "and 283 more series, 282 of them with work at risk" in text


def test_bars_are_full_only_when_all_is_stored() -> None:
    """A terminal shows how far an upload is, and never a full bar before the last byte."""
    assert "[#########.......] 61 %, 12 s left" in screen(BUSY, bars=True)
    almost = view(4300, "uploading", bytes_stored=10 * GIB - 1)
    assert "#.] 99 %" in screen(replace(BUSY, checkpoints=(almost,)), bars=True)


def test_a_number_keeps_its_unit() -> None:
    """Wherever a narrow terminal wraps, no line begins with a unit."""
    for width in range(20, 80):
        for line in screen(BUSY, width=width).splitlines():
            assert not re.match(r"\s*(%|s|B|GiB|min|h)\b", line), (width, line)


def test_before_the_first_save_there_is_no_talk_of_safety() -> None:
    """Where nothing was ever seen the screen says that, not that nothing is at risk."""
    text = screen(replace(CALM, recovery_points=(), checkpoints=()))
    assert "no checkpoint has been seen yet" in text
    assert "at risk" not in text


def test_series_are_told_newest_first() -> None:
    """The series that was saved last comes first; one without a safe checkpoint says so."""
    other = [view(7, "settled", series="b", checkpoint="b/7", saved_at=NOW)]
    text = screen(replace(BUSY, checkpoints=(*BUSY.checkpoints, *other)))
    assert text.index("b: nothing safe yet") < text.index("llama: step 4200")


def test_one_screen_is_enough_for_many_checkpoints() -> None:
    """Hundreds of checkpoints are summed up, and what is not safe is never summed up as safe."""
    many = tuple(view(step, "safe") for step in range(500))
    text = screen(replace(CALM, checkpoints=(*many, view(500, "uploading"))))
    assert len(text.splitlines()) < 15
    assert "and 498 safe" in text
    assert "checkpoint-500  uploading" in text


def test_not_whole_is_never_a_hundred_percent() -> None:
    """An upload shows 100 % only when all its bytes are stored."""
    almost = view(4300, "uploading", bytes_stored=10 * 2**30 - 1)
    assert "at 99 %" in screen(replace(BUSY, checkpoints=(almost,)))


def test_one_line_for_the_service_manager() -> None:
    """The summary is one line that names state, recovery point and progress, or the failure."""
    assert summary(BUSY, NOW) == ("running: step 4200 safe 38 s ago; step 4300 at 61 %, 12 s left")
    failing = replace(BUSY, store_failing="HTTP 503")
    assert summary(failing, NOW).startswith("running: store failing: HTTP 503; step 4200")


def test_a_name_cannot_forge_the_screen() -> None:
    """Control characters, escapes and line breaks in names and reasons come out escaped."""
    evil = "a\x1b[2J\n\rsafe\u202e\udcff"
    snapshot = replace(
        BUSY,
        checkpoints=(view(1, "parked", checkpoint=evil, series=evil, reason=evil),),
        warnings=(evil,),
        polled=(evil,),
        last_error=evil,
    )
    text = screen(snapshot)
    assert "\x1b" not in text
    assert "\\x1b[2J\\n\\rsafe\\u202e\\xff" in text


def test_secrets_are_hidden() -> None:
    """A signature in an error's text is not shown."""
    text = screen(replace(BUSY, last_error="GET https://u:pw@h/x?X-Amz-Signature=abc123 failed"))
    assert "abc123" not in text
    assert "pw" not in text


def test_width_and_colour_are_arguments() -> None:
    """Lines are wrapped to the width; colours change nothing but the colour."""
    narrow = screen(BUSY, width=40)
    assert max(len(line) for line in narrow.splitlines()) <= 40
    coloured = screen(BUSY, colour=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == screen(BUSY)


@given(SNAPSHOTS, st.integers(1, 200), st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_snapshot_can_be_shown(snapshot: Snapshot, width: int, colour: bool) -> None:  # noqa: FBT001
    """Whatever a snapshot holds, the screen is plain lines without control characters."""
    for line in lines(snapshot, DAEMON, now=NOW, style=Style(width, colour)):
        assert re.sub(r"\x1b\[[0-9;]*m", "", line).isprintable() or not line
        line.encode()
    assert summary(snapshot, NOW).isprintable()
