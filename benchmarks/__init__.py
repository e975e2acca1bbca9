"""Measurements: this program and its peers on the same server in the same run."""
