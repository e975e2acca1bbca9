"""A sidecar that gets training checkpoints off a machine before the machine is gone."""

__version__ = "0.1.0"
