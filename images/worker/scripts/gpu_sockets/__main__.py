"""Add the cores of their sockets to the GPUs of a gres.conf.

The arguments: SYS PROC SOCKETS:CORES_PER_SOCKET SOCKET,SOCKET...|''. The last one has a socket for every GPU, and is
empty to read them from the machine. The file is read from the standard input, and written to the standard output.
"""

import sys
from pathlib import Path

from gpu_sockets.gres_lines import declared, found, with_cores
from gpu_sockets.machine import NotKnownError


def main() -> int:
    """Write the file, with cores if the sockets of all GPUs are known. Return the exit code."""
    sys_dir, proc, layout, given = sys.argv[1:]
    sockets, cores = map(int, layout.split(":"))
    lines = sys.stdin.read().splitlines()
    if sockets == 1:  # it has all cores
        print("\n".join(lines))
        return 0
    try:
        of_gpus = declared(lines, given) if given else found(lines, Path(sys_dir), Path(proc), sockets, cores)
        lines = with_cores(lines, of_gpus, sockets, cores)
    except NotKnownError as reason:
        print(f"Slurm does not know the sockets of the GPUs: {reason}", file=sys.stderr)
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
