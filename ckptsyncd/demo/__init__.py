"""The story in one terminal: a trainer, a machine that vanishes, and what is left of its work."""
