"""Alibaba and Tencent: one key each, with a token and a zone of their own."""

from __future__ import annotations

import pytest

from ckptsyncd.core.messages import Withdrawn
from ckptsyncd.sources.alibaba import Alibaba
from ckptsyncd.sources.tencent import HOST, Tencent
from tests.sources.bench import Bench, Listener


def alibaba(bench: Bench) -> Listener:
    """Return a listener to Alibaba's key."""
    return bench.listen(Alibaba(bench.wire(bench.cloud.alibaba_url)))


def tencent(bench: Bench) -> Listener:
    """Return a listener to Tencent's key, at an address that needs no DNS."""
    return bench.listen(Tencent(lambda _host: bench.cloud.url, bench.wire))


@pytest.mark.parametrize("requires_token", [True, False])
def test_alibaba_gives_five_minutes(bench: Bench, *, requires_token: bool) -> None:
    """Scenario 33: with and without tokens, from nothing to a notice and back."""
    bench.cloud.alibaba.requires_token = requires_token
    listener = alibaba(bench)
    assert listener.is_quiet()
    bench.cloud.alibaba.release()
    notice = listener.notice()
    assert bench.left(notice) == 300.0
    bench.cloud.alibaba.value = None
    assert Withdrawn("alibaba", notice.notice_id) in listener.turn()


def test_alibabas_token_expires(bench: Bench) -> None:
    """A token that is no longer taken is replaced within the same poll."""
    bench.cloud.alibaba.requires_token = True
    listener = alibaba(bench)
    listener.turn()
    bench.scene.advance(30000.0)
    assert listener.blind() == ""


@pytest.mark.parametrize(("value", "is_none"), [("", True), ("soon", False)])
def test_alibabas_odd_values(bench: Bench, value: str, *, is_none: bool) -> None:
    """An empty answer is an older machine's "nothing"; a time that cannot be read is a notice."""
    bench.cloud.alibaba.value = value
    listener = alibaba(bench)
    if is_none:
        assert listener.is_quiet()
    else:
        assert bench.left(listener.notice()) == 300.0


@pytest.mark.parametrize("kind", ["portal", "reset"])
def test_alibaba_is_not_there(bench: Bench, kind: str) -> None:
    """What is not Alibaba's own answer is unknown."""
    bench.cloud.faults.inject(kind, "/alibaba/*")
    bench.cloud.alibaba.release()
    assert alibaba(bench).blind()


def test_alibaba_keeps_its_tokens_to_itself(bench: Bench) -> None:
    """Where no token can be had and one is required, that is unknown and no storm."""
    bench.cloud.alibaba.requires_token = True
    bench.cloud.faults.inject("status", "/alibaba/latest/api/token", argument="500")
    assert "answers 401" in alibaba(bench).blind()


def test_tencents_time_is_eight_hours_ahead(bench: Bench) -> None:
    """Scenario 34: a time without a zone is UTC+8, not ours."""
    listener = tencent(bench)
    assert listener.is_quiet()
    bench.cloud.tencent.release()
    assert bench.left(listener.notice()) == 120.0
    bench.cloud.tencent.value = None
    assert isinstance(listener.turn()[0], Withdrawn)


def test_tencents_time_in_utc(bench: Bench) -> None:
    """Should the time ever come in UTC, it is eight hours off, and the default is taken."""
    bench.cloud.tencent.value = "2025-06-15 15:08:40"
    notice = tencent(bench).notice()
    assert bench.left(notice) == 120.0
    assert "names no time" in notice.text


def test_tencents_name_is_resolved_once(bench: Bench) -> None:
    """The address is kept: there may be no DNS any more when the notice comes."""
    names: list[str] = []

    def resolve(name: str) -> str:
        names.append(name)
        return bench.cloud.url

    listener = bench.listen(Tencent(resolve, bench.wire))
    for _ in range(3):
        listener.turn()
    assert names == [HOST]


def test_tencents_name_is_unknown(bench: Bench) -> None:
    """Without an address the source is blind, and asks again."""

    def resolve(_name: str) -> str:
        raise OSError(-2, "Name or service not known")

    assert "has no address" in bench.listen(Tencent(resolve, bench.wire)).blind()


def test_tencent_says_nothing_at_all(bench: Bench) -> None:
    """An empty answer is neither a time nor "nothing"."""
    bench.cloud.tencent.value = ""
    assert "answers with nothing" in tencent(bench).blind()
