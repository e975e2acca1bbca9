"""What is called safe is looked for again, and is safe no longer where it is gone."""

from __future__ import annotations

from dataclasses import replace

from ckptsyncd.core.messages import KeysListed, RecordRead
from ckptsyncd.core.orders import Errand, GetSmall, ListKeys
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Verification
from ckptsyncd.core.records.manifest import Manifest
from ckptsyncd.core.records.memory import Recalled, SafeRow
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.eyes import Eyes
from ckptsyncd.core.seeing.layouts import BUILT_IN
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.runs import Runs
from ckptsyncd.core.tidying.gone import Minders, gone
from ckptsyncd.core.tidying.recheck import LIST, MISSING, VERIFIED, Recheck
from ckptsyncd.core.turn import Notebook
from tests.core.parts import manifest, settled

RULES = Policy(recheck_seconds=600.0)
A = manifest()
KEY = names.manifest_key(A.checkpoint, A.edition)
DOUBT = Errand(MISSING, A.checkpoint, index=A.edition)


def minders(*safe: Manifest, policy: Policy = RULES) -> Minders:
    """Return the parts of a mind that calls these safe."""
    editions = Editions(policy, "me", Recalled())
    runs = Runs(policy, "host", "me", {}, {})
    for one in safe:
        editions.safe[one.checkpoint] = SafeRow(one, settled(checkpoint=one.checkpoint).listing)
        editions.catalog.add(one.checkpoint, one.edition)
        editions.numbers[one.checkpoint] = one.edition
        runs.saw_commit(one, Notebook())
    return Minders(Eyes(policy, BUILT_IN), editions, runs)


def recheck(of: Minders) -> Recheck:
    """Return one whose record of verifications was read at 0."""
    made = Recheck(of.editions.policy, of.editions, of.runs)
    list(made.orders(0.0))
    made.read(RecordRead(VERIFIED, None, ""), 0.0)
    return made


def test_the_store_is_asked_now_and_then() -> None:
    """Within the interval nothing is asked; then one list and one record."""
    one = recheck(minders(A))
    assert list(one.orders(599.0)) == []
    assert one.next_alarm() == 600.0
    assert {type(order) for order in one.orders(600.0)} == {GetSmall, ListKeys}


def test_zero_never_asks() -> None:
    """Whoever pays for every list can have none."""
    of = minders(A, policy=Policy(recheck_seconds=0.0))
    one = Recheck(of.editions.policy, of.editions, of.runs)
    assert list(one.orders(1e9)) == []
    assert one.next_alarm() == float("inf")


def test_what_is_listed_stays_safe() -> None:
    """A list that shows every manifest asks for nothing more."""
    one = recheck(minders(A))
    one.listed(KeysListed(LIST, (KEY,)), 600.0)
    assert list(one.orders(601.0)) == [GetSmall(VERIFIED, names.VERIFIED)]


def test_what_a_list_misses_is_asked_for_by_its_key() -> None:
    """A commit while the list was made is no loss: only a missing record counts."""
    one = recheck(minders(A))
    one.listed(KeysListed(LIST, ()), 600.0)
    assert GetSmall(DOUBT, KEY) in list(one.orders(601.0))
    assert one.read(RecordRead(DOUBT, b"{}", "1"), 602.0) is None
    one.listed(KeysListed(LIST, ()), 1200.0)
    assert one.read(RecordRead(DOUBT, None, ""), 1201.0) == (A.checkpoint, A.edition)
    assert one.read(RecordRead(DOUBT, None, ""), 1202.0) is None


def test_what_is_gone_is_safe_for_nobody() -> None:
    """Neither the checkpoint nor the recovery point of its series counts on it any more."""
    newer = replace(A, checkpoint="run/b.ckpt", step=200)
    of = minders(A, newer)
    gone(of, newer.checkpoint, newer.edition, 50.0, Notebook())
    assert list(of.editions.safe) == [A.checkpoint]
    assert of.runs.of("run").best == A
    gone(of, A.checkpoint, A.edition, 50.0, Notebook())
    assert of.runs.of("run").best is None


def test_its_number_is_tried_again_so_that_its_claim_is_read() -> None:
    """Under the next number what was pruned on purpose would be stored once more."""
    of = minders(A)
    gone(of, A.checkpoint, A.edition, 50.0, Notebook())
    assert of.editions.next_number(A.checkpoint) == A.edition


def test_the_last_verification_is_known() -> None:
    """The record is read; one that nobody understands counts as none."""
    one = recheck(minders(A))
    record = Verification("full", 1_750_000_000.0, whole=3, broken=1)
    one.read(RecordRead(VERIFIED, record.encode(), "1"), 600.0)
    assert one.verification == record
    one.read(RecordRead(VERIFIED, b"rubbish", "2"), 1200.0)
    assert one.verification is None
