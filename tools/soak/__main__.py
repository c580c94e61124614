"""`make soak`: runs all tests with full counts, part by part; `make soak PART=3/29` runs one part."""

import argparse
import sys

from tools import console
from tools.console import say
from tools.soak import part_run
from tools.soak.parts import all_parts, named


def main() -> int:
    """Run the part that the command line names, or all parts, even after a failure, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", help="number and total, such as 3/29 (default: all parts in turn)")
    given = parser.parse_args().part
    parts = all_parts()
    chosen = [named(parts, given)] if given else parts
    failed = [part.name for part in chosen if not part_run.run(part)]
    if failed and len(chosen) > 1:
        say(f"{len(failed)} of {len(chosen)} parts failed: {', '.join(failed)}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(console.run(main))
