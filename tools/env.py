"""`make env`: shell settings that point every tool at the cluster of `make up`: eval "$(make -s env)"."""

import os
import shlex
import sys

from tools import chosen_cluster, console, engine


def main() -> None:
    """Print only export lines to standard output."""
    chosen = chosen_cluster.choose()
    settings = {**chosen.environment(), **engine.cli_environment(chosen.state_dir)}
    if chosen.embedded is not None:
        settings["PATH"] = f"{chosen.embedded.bin_dir}{os.pathsep}{os.environ['PATH']}"
    for name, value in settings.items():
        print(f"export {name}={shlex.quote(value)}")


if __name__ == "__main__":
    sys.exit(console.run(main))
