"""Writes a ledger as a daemon does, and says after each transaction what survives from then on."""

import os
import sys
from pathlib import Path

from ckptsyncd.core.orders import Forget, Remember
from ckptsyncd.edge.ledger import Ledger

ledger = Ledger(Path(sys.argv[1]) / "state" / "ledger.sqlite", "scope")
for number in range(8):
    rows = [Remember("editions", f"{number}.{part}", "x" * 900, durable=True) for part in range(3)]
    ledger.apply(rows)
    os.write(1, f"+{number}".encode())
    if number % 3 == 2:
        ledger.apply([Remember("last", "seen", str(number))])
        gone = number - 1
        mark = Remember("editions", "mark", "x", durable=True)
        ledger.apply([Forget("editions", f"{gone}.0"), mark])
        os.write(1, f"-{gone}".encode())
ledger.close()
os.write(1, b"closed")
