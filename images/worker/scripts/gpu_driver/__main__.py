"""Lay out the GPU driver that the container runtime has mounted, for jobs.

The arguments: MOUNTINFO TREE VOLUME[:ro]...
"""

import subprocess
import sys
from pathlib import Path

from gpu_driver.discovery import find, mount_points
from gpu_driver.layout_tree import lay_out


def main() -> int:
    """Make TREE if the container has a driver, or remove it. Return the exit code."""
    mountinfo, tree, *volumes = sys.argv[1:]
    points = mount_points(Path(mountinfo).read_text())
    try:
        lay_out(find(points, [Path(volume.removesuffix(":ro")) for volume in volumes]), Path(tree))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"slurmd is not started, as jobs would not see the GPU driver of this pod: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
