"""Several machines, one checkpoint: each stores its part, whoever sees the last one commits all."""
