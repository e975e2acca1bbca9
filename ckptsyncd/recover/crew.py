"""Several threads for one long job: daemon threads, so a stuck SDK call never holds the exit."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import Generic, TypeVar

from ckptsyncd.errors import CkptsyncdError

Job = TypeVar("Job")
Result = TypeVar("Result")

#: How long the end of a crew waits for a thread that is inside a store's call (guessed: the data
#: of one block; a thread that stays longer can do no harm, it writes to files that are let go).
_LEAVE_SECONDS = 10.0


class _Left:
    """A thread has left."""


class Crew(Generic[Job, Result]):
    """Threads that do one thing to many jobs. At most twice as many jobs as threads are taken."""

    def __init__(
        self,
        do: Callable[[Job], Result],
        workers: int,
        stop: threading.Event,
        wanted: Callable[[], int] | None = None,
    ) -> None:
        """Start the threads; ``stop`` is set when the crew ends early, for ``do`` to look at.

        No more than ``wanted`` of them have a job at any time.
        """
        self._do = do
        self._wanted = wanted or (lambda: workers)
        self._stop = stop
        self._inbox: queue.SimpleQueue[Job | _Left] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[Result | Exception | _Left] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._labour, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def results(self, jobs: Iterable[Job]) -> Iterator[Result]:
        """Yield results as they come, in no order; raises the first error of a job."""
        rest = iter(jobs)
        under_way = 0
        while True:
            for job in islice(rest, max(self._room() - under_way, 0)):
                self._inbox.put(job)
                under_way += 1
            if not under_way:
                return
            answer = self._outbox.get()
            under_way -= 1
            if isinstance(answer, _Left):
                msg = "a thread died of an error of this program; see the traceback above"
                raise CkptsyncdError(msg)
            if isinstance(answer, Exception):
                raise answer
            yield answer

    def _room(self) -> int:
        """Return how many jobs may be given out: where all are wanted the next ones wait ready."""
        wanted, workers = self._wanted(), len(self._threads)
        return wanted if wanted < workers else 2 * workers

    def close(self) -> None:
        """Let the threads go, at once if jobs are left."""
        self._stop.set()
        for _ in self._threads:
            self._inbox.put(_Left())
        for thread in self._threads:
            thread.join(_LEAVE_SECONDS / len(self._threads))

    def _labour(self) -> None:
        try:
            while not isinstance(job := self._inbox.get(), _Left) and not self._stop.is_set():
                self._outbox.put(self._answer(job))
        finally:
            self._outbox.put(_Left())

    def _answer(self, job: Job) -> Result | Exception:
        try:
            return self._do(job)
        except (CkptsyncdError, OSError) as error:
            return error


def each(
    jobs: Iterable[Job],
    do: Callable[[Job], Result],
    workers: int,
    stop: threading.Event,
    wanted: Callable[[], int] | None = None,
) -> Iterator[Result]:
    """Yield ``do(job)`` of every job as they come; raises the first error.

    ``stop`` is set once no more results are wanted, also after an error or an early end. ``wanted``
    says anew after each result how many of the workers, at least one, are to have a job.
    """
    with closing(Crew(do, workers, stop, wanted)) as crew:
        yield from crew.results(jobs)
