"""The mind: decides everything, touches nothing. No I/O, clock, thread, log or randomness here."""
