"""Watch slurmd until the container ends.

The arguments: PORT SERVICE, the port to open and the directory of slurmd's service.
"""

import sys
import time
from pathlib import Path

from slurmd_watch.port import Port
from slurmd_watch.watch import Watch, run_silently


def main() -> None:
    """Check slurmd in a loop, and act on the answer."""
    number, service = sys.argv[1:]
    with Port(int(number)) as port:
        watch = Watch(port, Path(service), time.monotonic, run_silently)
        while True:
            port.attend(watch.look())


if __name__ == "__main__":
    main()
