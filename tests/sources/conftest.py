"""What every test of a source begins with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.sources.bench import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Return a pretended cloud with ears."""
    with closing(Bench()) as made:
        yield made
