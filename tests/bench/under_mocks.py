"""Runs a program under mocks in a process of its own, and prints how many resources it registers: to be timed."""

import runpy
import sys

from soperator_pulumi.testing import deploy


def main() -> None:
    """Run the program in the folder of the first argument, with the number of the second in its configuration."""
    folder, count = sys.argv[1:]
    deployment = deploy(lambda: runpy.run_path(folder, run_name="__main__"), config={"bench:count": count})
    print(len(deployment.recorded))


if __name__ == "__main__":
    main()
