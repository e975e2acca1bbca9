"""The list of 44 scenarios of an interruption, and where each one is played.

1 terminate in 120 s; 2 stop; 3 hibernate; 4 a notice at start; 5 advice, then a notice; 6 advice
alone; 7 a notice without advice; 8 token expiry in the window; 9 metadata down in the window; 10
hop limit; 11 metadata switched off and on; 12 a far event, cancelled; 13 one EventId, two times;
14 Auto Scaling; 15 an old key without a time; 16 a time long past; 17 Google's preemption; 18 the
same with 120 s; 19 a 503 in the hang; 20 a change between two requests; 21 migration; 22 GPU host
maintenance; 23 upcoming maintenance; 24 Azure's preemption; 25 another machine's event; 26 started
at once; 27 freeze; 28 cancelled; 29 eight pollers; 30 a slow first answer; 31 two events; 32
acknowledgement; 33 Alibaba; 34 Tencent; 35 preStop; 36 a last checkpoint after SIGTERM; 37 Slurm's
signals; 38 suspend and resume; 39 five seconds; 40 no notice at all; 41 a stepped clock; 42 proxy
variables; 43 two deadlines; 44 withdrawal.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

#: What no source can show: signals to the process, the trainer, the end without a word. They are
#: played with the real program and with the mind alone.
ELSEWHERE = {35, 36, 37, 39, 40}


def mentioned() -> set[int]:
    """Return the numbers that docstrings of this room's tests claim."""
    found: set[int] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            text = ast.get_docstring(node) if isinstance(node, ast.FunctionDef) else None
            for claim in re.findall(r"Scenarios? ([\d, and]+):", text or ""):
                found |= {int(number) for number in re.findall(r"\d+", claim)}
    return found


def test_every_scenario_is_played() -> None:
    """Each scenario is claimed by a test of this room, or named as another room's."""
    assert mentioned() == set(range(1, 45)) - ELSEWHERE
