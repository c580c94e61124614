"""Watch a daemon until the container ends.

The arguments: DAEMON PORT PID MARK, which are slurmctld, slurmdbd or mariadb, the port to open, the process of the
daemon, and a file that is made once it has answered.
"""

import sys
import time
from pathlib import Path

from daemon_watch.questions import DAEMONS
from daemon_watch.watch import Watch, end, run_silently
from slurmd_watch.port import Port


def main() -> None:
    """Check the daemon in a loop, and act on the answer."""
    daemon, number, process, mark = sys.argv[1:]
    with Port(int(number)) as port:
        watch = Watch(
            daemon,
            DAEMONS[daemon],
            port,
            Path(mark),
            now=time.monotonic,
            run=run_silently,
            end=lambda: end(int(process)),
        )
        while True:
            port.attend(watch.look())


if __name__ == "__main__":
    main()
