"""One file per notice source; each polls once and returns what it found out."""
