"""Runs `up` of a test's stack in a process of its own, so that tests can kill and time it."""

import json
import sys
from pathlib import Path

from tools import console, engine, paths


def main() -> None:
    """Deploy what the argument, JSON, says."""
    given = json.loads(sys.argv[1])
    project = Path(given.get("project", paths.ROOT))
    deployer, _ = engine.choose(
        project, "test", Path(given["state"]), config=given["config"], environment=given["environment"]
    )
    deployer.up()


if __name__ == "__main__":
    sys.exit(console.run(main))
