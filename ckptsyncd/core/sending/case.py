"""One answer about one edition, with everything that may follow from it."""

from __future__ import annotations

from dataclasses import dataclass

from ckptsyncd.core.orders import Order
from ckptsyncd.core.sending.edition import Edition
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.scene import Scene
from ckptsyncd.core.turn import Notebook


@dataclass(frozen=True, slots=True)
class Case:
    """What an answer is about, and everything that it can touch."""

    editions: Editions
    edition: Edition
    order: Order
    scene: Scene
    notes: Notebook
