"""The engines that tests run on, and the program that creates what it is told."""

from pathlib import Path

from tools.engine import CliDeployer, LocalDeployer

PROGRAM = Path(__file__).parent / "programs" / "declared"
ENGINES: dict[str, type[LocalDeployer] | type[CliDeployer]] = {"local": LocalDeployer, "pulumi": CliDeployer}
