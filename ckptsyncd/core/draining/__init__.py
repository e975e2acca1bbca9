"""What a notice means: the time left, what fits into it, and what became of it."""
