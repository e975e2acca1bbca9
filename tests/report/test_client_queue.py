"""A daemon that many ask at once is there: whoever comes when its queue is full waits."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor, TimeoutError  # noqa: A004 - Python 3.10's
from contextlib import ExitStack, suppress
from pathlib import Path

from ckptsyncd.client import Client


def test_a_full_queue_is_waited_for(tmp_path: Path) -> None:
    """Who asks while the queue is full gets the answer when those before were heard."""
    path = tmp_path / "s"
    with ExitStack() as held, ThreadPoolExecutor() as pool:
        server = held.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(str(path))
        server.listen(0)
        server.settimeout(20.0)
        waiting = 0
        with suppress(BlockingIOError):
            while True:
                client = held.enter_context(socket.socket(socket.AF_UNIX))
                client.setblocking(False)
                client.connect(str(path))
                waiting += 1
        asked = pool.submit(Client(path).status)
        with suppress(TimeoutError):
            asked.result(0.2)
        for _ in range(waiting):
            held.enter_context(server.accept()[0])
        connection = held.enter_context(server.accept()[0])
        with connection.makefile("rwb") as file:
            assert json.loads(file.readline()) == {"request": "status"}
            file.write(b'{"answer": {"state": "busy"}}\n')
        connection.shutdown(socket.SHUT_RDWR)
        assert asked.result(20.0) == {"state": "busy"}
