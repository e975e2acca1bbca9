"""What is done when nothing is urgent: pruning, looking whether safe is still safe, local space."""
