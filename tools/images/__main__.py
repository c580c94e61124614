"""Build the container images, and push them to `--registry`."""

import argparse
import sys

from tools import console
from tools.images import build, push, references


def main() -> None:
    """Build, push, and print the `images:` block for a stack."""
    parser = argparse.ArgumentParser(prog="python -m tools.images", description=__doc__)
    parser.add_argument("--registry", help="registry to push to: registry.example.org/hpc")
    parser.add_argument("--base", help="Debian trixie image to build on, instead of one made from packages")
    parser.add_argument("--mirror", help="URL of a Debian mirror, instead of that of this machine's apt")
    parser.add_argument("--print", action="store_true", help="print the references alone, and build nothing")
    arguments = parser.parse_args()
    if not arguments.print:
        build(base=arguments.base, mirror=arguments.mirror)
        if arguments.registry:
            push(arguments.registry, base=arguments.base)
    print("images:")
    for name, reference in references(arguments.registry, base=arguments.base).items():
        print(f"  {name}: {reference}")


if __name__ == "__main__":
    sys.exit(console.run(main))
