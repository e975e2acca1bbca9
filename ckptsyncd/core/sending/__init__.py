"""One checkpoint on its way: what it still needs, what goes out next, what an answer changes."""
