"""Run the pretended service in the foreground, with real time, until it is interrupted."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from contextlib import closing

from ckptsyncd.sources.pretend.admin import Admin
from ckptsyncd.sources.pretend.scene import Scene
from ckptsyncd.sources.pretend.server import PretendedMetadata


def main() -> None:
    """Say where it listens, and how to point a program there."""
    parser = argparse.ArgumentParser(prog="ckptsyncd-fake-metadata")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--admin-port", type=int, default=0)
    ports = parser.parse_args()
    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    with (
        closing(PretendedMetadata(Scene(time.time), port=ports.port)) as service,
        closing(Admin(service, ports.admin_port)) as admin,
    ):
        host = service.url.removeprefix("http://")
        lines = (
            f"AWS_EC2_METADATA_SERVICE_ENDPOINT={service.url}",
            f"GCE_METADATA_HOST={host}",
            f"# Azure {service.url}",
            f"# Alibaba {service.alibaba_url}",
            f"# admin {admin.url}",
        )
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        signal.sigwait(signals)


if __name__ == "__main__":
    main()
