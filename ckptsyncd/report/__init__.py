"""Taps: each reads moves and snapshots, tells somebody, and changes nothing."""
