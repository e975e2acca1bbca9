"""What an answer tells about the speed of the link and of the store."""

from __future__ import annotations

from ckptsyncd.core.messages import Answer, ObjectStored, PieceStored, Report
from ckptsyncd.core.orders import Begin, Finish, GetSmall, HandOrder, PutSmall, Sum
from ckptsyncd.core.sending.outstanding import Out, Outstanding
from ckptsyncd.core.sending.rate import Rate


def measure(
    message: Answer | Report, out: Out, now: float, rate: Rate, outstanding: Outstanding
) -> bool:
    """Take in how long an order took; return whether it sent bytes of a checkpoint."""
    if isinstance(out.order, HandOrder) and not isinstance(out.order, Sum):
        wanted = outstanding.crew.hands(outstanding.policy.hands)
        outstanding.throttle.eased(out.since, wanted)
    if isinstance(message, PieceStored):
        size, seconds = message.receipt.length, message.seconds
    elif isinstance(message, ObjectStored) and message.errand.purpose == "whole":
        size, seconds = message.fact.size, message.seconds
    else:
        if isinstance(out.order, PutSmall | GetSmall | Begin | Finish):
            rate.answered(now - out.since)
        return False
    rate.stored(size, seconds, now)
    outstanding.stored(out, size)
    if outstanding.throttle.most is None:
        most, busy = outstanding.policy.hands, outstanding.busy + outstanding.answered - 1
        outstanding.crew.did(size, out.since, now, most=most, busy=busy)
    return True
