"""``python -m ckptsyncd``."""

from ckptsyncd.cli import main

if __name__ == "__main__":
    main()
