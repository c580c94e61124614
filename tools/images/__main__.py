"""Build the container images, and push them to `--registry`."""

import argparse
import sys
from pathlib import Path

from tools import console
from tools.images import DEFAULT_SLURM, SUITES, build, push, references


def main() -> None:
    """Build, push, and print the `images:` block for a stack."""
    parser = argparse.ArgumentParser(prog="python -m tools.images", description=__doc__)
    parser.add_argument("--registry", help="registry to push to: registry.example.org/hpc")
    parser.add_argument(
        "--slurm", choices=SUITES, default=DEFAULT_SLURM, help="version of Slurm (default: %(default)s)"
    )
    parser.add_argument("--base", help="Debian image to build on, of the release with that Slurm, instead of packages")
    parser.add_argument("--mirror", help="URL of a Debian mirror, instead of that of this machine's apt")
    parser.add_argument(
        "--source",
        type=Path,
        help="archive of that Slurm's sources, to build the plugin for PMIx where Debian has none",
    )
    parser.add_argument("--print", action="store_true", help="print the references alone, and build nothing")
    arguments = parser.parse_args()
    if not arguments.print:
        build(base=arguments.base, mirror=arguments.mirror, slurm=arguments.slurm, source=arguments.source)
        if arguments.registry:
            push(arguments.registry, base=arguments.base, slurm=arguments.slurm, source=arguments.source)
    print("images:")
    named = references(arguments.registry, base=arguments.base, slurm=arguments.slurm, source=arguments.source)
    for name, reference in named.items():
        print(f"  {name}: {reference}")


if __name__ == "__main__":
    sys.exit(console.run(main))
