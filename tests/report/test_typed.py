"""Reading JSON by types: whatever a document holds, what comes out is of its type."""

from __future__ import annotations

from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import given
from hypothesis import strategies as st

from ckptsyncd.core.snapshot import CheckpointView, Snapshot, SourceView
from ckptsyncd.report.typed import built

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def test_what_is_missing_or_wrong_is_nothing() -> None:
    """A number is no text, a flag no number, and a list of anything keeps what fits."""
    row = {"step": True, "checkpoint": 7, "bytes": "9", "retry_at": 3, "at_risk": 1}
    found = built(CheckpointView, row)
    assert (found.step, found.checkpoint, found.bytes, found.at_risk) == (None, "", 0, False)
    assert (found.retry_at, type(found.retry_at)) == (3.0, float)
    sources = [{"source": "aws"}, 5, {"source": "gcp", "blind": "no route"}]
    snapshot = built(Snapshot, {"sources": sources, "polled": ["a", 5], "drain_plan": [1]})
    assert snapshot.sources == (SourceView("aws", ""), SourceView("gcp", "no route"))
    assert (snapshot.polled, snapshot.drain_plan) == (("a",), None)


def test_what_is_given_is_taken_as_it_is() -> None:
    """A field that has another name in the document is said beside it."""
    assert built(SourceView, {"source": "x"}, source="y") == SourceView("y", "")


@given(st.dictionaries(st.sampled_from(sorted(Snapshot.__dataclass_fields__)), ANY_JSON))
def test_any_document_makes_a_snapshot(row: dict[str, Any]) -> None:
    """No document breaks the reading, and no plain field gets a value of another type."""
    snapshot = built(Snapshot, row)
    for name, hint in get_type_hints(Snapshot).items():
        value, plain = getattr(snapshot, name), get_origin(hint) is None and not get_args(hint)
        if plain and hint in (str, int, float):
            assert type(value) is hint, name
