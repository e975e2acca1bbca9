"""The edge: touches the machine and reports what it saw; never decides, retries or waits."""
