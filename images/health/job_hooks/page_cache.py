"""The machine's page cache, which belongs to the kernel and so to all pods on the machine."""

from node_health.bounded import BoundedProgram

_DROP = "mount -o remount,bind,rw /proc/sys 2> /dev/null; echo 1 > /proc/sys/vm/drop_caches"
"""Script that drops clean pages (Documentation/admin-guide/sysctl/vm.rst).

Container runtimes mount /proc/sys read-only: the script mounts it writable in a mount namespace of its own, which ends
with it.
"""


def drop(seconds: float) -> str:
    """Drop the cache, and return the reason of a failure; empty if it succeeded."""
    end = BoundedProgram(("unshare", "--mount", "/bin/sh", "-c", _DROP), seconds).finish()
    if end.status is None:
        return f"no end in {seconds:g} s"
    return f"the machine refuses: {end.words}" if end.status else ""
