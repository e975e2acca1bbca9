"""What was seen on the disk: which files belong together, and when a checkpoint is whole."""
