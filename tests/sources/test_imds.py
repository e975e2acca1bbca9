"""EC2's door: every row of the table of token and data answers, and what each one is called."""

from __future__ import annotations

import pytest

from ckptsyncd.core.draining.notices import Poll
from ckptsyncd.sources.imds import IDENTITY_PATH, LIFE_HEADER, TOKEN_PATH, Imds
from ckptsyncd.sources.wire import Answer
from tests.sources.bench import SILENCE_SECONDS, Bench

PATH = "/latest/meta-data/spot/instance-action"


def door(bench: Bench, *, v1: bool = True, disabled: bool = False) -> Imds:
    """Return a door that waits a moment for answers that never come."""
    wire = bench.wire(read_seconds=SILENCE_SECONDS)
    return Imds(wire, v1_fallback=v1, disabled=disabled)


def asked(bench: Bench, imds: Imds) -> Answer | Poll:
    """Ask for the notice now."""
    return imds.get(PATH, bench.clock.now())


def is_none(found: Answer | Poll) -> bool:
    """Tell whether this is EC2's own word for "nothing"."""
    return isinstance(found, Answer) and found.status == 404


def verdict(found: Answer | Poll) -> str:
    """Return the verdict of a door that did not open, and what it makes of the pause."""
    assert isinstance(found, Poll), found
    assert found.state == "unknown"
    return found.reason


def puts(bench: Bench) -> int:
    """Return how many tokens were asked for."""
    return sum(request.startswith("PUT") for request in bench.cloud.aws.requests)


def test_healthy(bench: Bench) -> None:
    """A token is fetched once and used for every request; the identity is proved once."""
    bench.cloud.aws.tokens = "required"
    imds = door(bench)
    for _ in range(3):
        assert is_none(asked(bench, imds))
    assert bench.cloud.aws.requests == [
        f"PUT {TOKEN_PATH}", f"GET {PATH}", f"GET {IDENTITY_PATH}", f"GET {PATH}", f"GET {PATH}",
    ]  # fmt: skip


def test_the_token_is_renewed_before_it_expires(bench: Bench) -> None:
    """At three quarters of its life a token is replaced, without a 401 in between."""
    imds = door(bench)
    asked(bench, imds)
    bench.wait(0.74 * 21600)
    asked(bench, imds)
    assert puts(bench) == 1
    bench.wait(0.02 * 21600)
    asked(bench, imds)
    assert puts(bench) == 2


def test_a_token_that_cannot_be_renewed_serves_on(bench: Bench) -> None:
    """A failed renewal costs nothing while the old token lives."""
    bench.cloud.aws.tokens = "required"
    imds = door(bench)
    asked(bench, imds)
    bench.wait(0.8 * 21600)
    bench.cloud.faults.inject("status", TOKEN_PATH, argument="503")
    assert is_none(asked(bench, imds))
    bench.wait(0.3 * 21600)
    assert "answers 503" in verdict(asked(bench, imds))


def test_the_hop_limit_swallows_the_token_and_none_is_required(bench: Bench) -> None:
    """Scenario 10: the old way works; the token is not asked for again at every poll."""
    bench.cloud.aws.is_beyond_hop_limit = True
    imds = door(bench)
    for _ in range(3):
        assert is_none(asked(bench, imds))
    assert puts(bench) == 1
    bench.wait(301.0)
    bench.cloud.aws.is_beyond_hop_limit = False
    assert is_none(asked(bench, imds))
    assert puts(bench) == 2


def test_the_hop_limit_swallows_the_token_and_one_is_required(bench: Bench) -> None:
    """Scenario 10: the verdict names the hop limit, and the door is tried again slowly."""
    bench.cloud.aws.is_beyond_hop_limit = True
    bench.cloud.aws.tokens = "required"
    imds = door(bench)
    found = asked(bench, imds)
    assert "hop limit" in verdict(found)
    assert isinstance(found, Poll)
    assert found.wait_seconds == 30.0
    bench.cloud.aws.is_beyond_hop_limit = False
    bench.wait(30.0)
    assert is_none(asked(bench, imds))


def test_the_old_way_is_forbidden_by_us(bench: Bench) -> None:
    """Where requests without a token are not allowed, none is sent."""
    bench.cloud.aws.is_beyond_hop_limit = True
    found = asked(bench, door(bench, v1=False))
    assert "hop limit" in verdict(found)
    assert not any(request.startswith("GET") for request in bench.cloud.aws.requests)


def test_a_service_without_tokens(bench: Bench) -> None:
    """A service that is older than tokens, or only looks like EC2, is asked the old way."""
    bench.cloud.aws.tokens = "absent"
    assert is_none(asked(bench, door(bench)))


def test_switched_off_and_on_again(bench: Bench) -> None:
    """Scenario 11: forbidden is a verdict that is tried again, not for ever."""
    bench.cloud.aws.tokens = "disabled"
    imds = door(bench)
    found = asked(bench, imds)
    assert "metadata is switched off, or a proxy" in verdict(found)
    assert isinstance(found, Poll)
    assert found.wait_seconds == 30.0
    bench.cloud.aws.tokens = "required"
    bench.wait(30.0)
    assert is_none(asked(bench, imds))


def test_switched_off_while_we_listen(bench: Bench) -> None:
    """A door that closes at run time is unknown at once, and has its verdict a poll later."""
    imds = door(bench)
    asked(bench, imds)
    bench.cloud.aws.tokens = "disabled"
    assert "(403)" in verdict(asked(bench, imds))
    assert "metadata is switched off" in verdict(asked(bench, imds))


def test_our_own_mistake_is_loud(bench: Bench) -> None:
    """A token request that EC2 calls malformed is a bug of ours, and is not repeated fast."""
    bench.cloud.faults.inject("status", TOKEN_PATH, argument="400")
    assert "please report this" in verdict(asked(bench, door(bench)))


def test_nobody_is_there(bench: Bench) -> None:
    """A machine that is not at EC2 hears so."""
    bench.cloud.refuse()
    assert "not EC2, or a firewall" in verdict(asked(bench, door(bench)))


def test_a_fresh_token_that_is_refused(bench: Bench) -> None:
    """A 401 is answered by one new token and one more request, never by a storm."""
    bench.cloud.faults.inject("status", PATH, argument="401")
    assert "refuses our token (401)" in verdict(asked(bench, door(bench)))
    assert puts(bench) == 2


@pytest.mark.parametrize("kind", ["portal", "empty"])
def test_what_answers_is_not_ec2(bench: Bench, kind: str) -> None:
    """A login page or an empty 200 in place of a token is nobody's token."""
    bench.cloud.faults.inject(kind, TOKEN_PATH)
    assert verdict(asked(bench, door(bench)))
    assert bench.cloud.aws.requests in ([], [f"PUT {TOKEN_PATH}"])


def test_a_token_without_the_echo_of_its_life(bench: Bench) -> None:
    """EC2 repeats the life it granted; whoever does not is not EC2."""
    bench.cloud.faults.inject("headless", TOKEN_PATH, argument=LIFE_HEADER)
    assert "not EC2" in verdict(asked(bench, door(bench)))


def test_a_token_that_cannot_be_a_header(bench: Bench) -> None:
    """A token with a line break in it is sent nowhere."""
    bench.cloud.faults.inject("body", TOKEN_PATH, argument="a token\r\nHost: elsewhere")
    assert "not EC2" in verdict(asked(bench, door(bench)))


def test_switched_off_by_the_environment(bench: Bench) -> None:
    """The SDKs' own switch is honoured without a single request."""
    assert "AWS_EC2_METADATA_DISABLED" in verdict(asked(bench, door(bench, disabled=True)))
    assert bench.cloud.aws.requests == []


def test_a_suspended_machine_comes_back(bench: Bench) -> None:
    """Scenario 38: a token that died while we were frozen is replaced in the first poll."""
    bench.cloud.aws.tokens = "required"
    imds = door(bench)
    asked(bench, imds)
    bench.wait(7 * 86400.0)
    assert is_none(asked(bench, imds))


def test_a_token_dies_although_its_time_is_not_over(bench: Bench) -> None:
    """Scenario 38: a clock that stood still meanwhile is overruled by EC2's 401."""
    bench.cloud.aws.tokens = "required"
    imds = door(bench)
    asked(bench, imds)
    bench.scene.advance(7 * 86400.0)
    assert is_none(asked(bench, imds))
