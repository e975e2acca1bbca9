"""What every store promises, as one suite: a store's own file brings a fixture and inherits it."""

from __future__ import annotations

from tests.stores.suite_ending import Ending
from tests.stores.suite_reading import Reading
from tests.stores.suite_storing import Storing


class Conformance(Storing, Ending, Reading):
    """The suite. ``store`` is empty and fresh, ``behind`` looks past it."""
