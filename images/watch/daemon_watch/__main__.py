"""Watch a daemon for ever.

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
    """Ask, act, and wait, in turn."""
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
