"""A machine of the lab on which `make up` runs: the embedded Kubernetes with cgroup v2 and AppArmor."""

import os
import shlex
import tempfile
from pathlib import Path

from tools.kube import debs
from tools.kube.pki import Pki
from tools.lab import shared_volumes
from tools.lab.further_machines import Further
from tools.paths import ROOT, cache_dir, state_dir

MEMORY_MIB = 8192
"""Memory of a machine with README's quick start, with its containers' files."""

FURTHER_MEMORY_MIB = 4096
"""Memory of a further machine, with the packed images and those of a worker."""

PROCESSORS = 2
"""Processors, of which a worker has one at least: cpusets need two."""

_SCRIPT = Path(__file__).with_suffix(".sh")
_STATE_HOME = "/run/state"  # short, as it holds sockets


def preparation(name: str = "lab") -> str:
    """Return a script after which `make up` can run in the current folder, with the images in this machine's cache.

    The AppArmor profile of `docs/apparmor` is loaded.

    Args:
        name: Name of the machine.

    Raises:
        UserError: The package of AppArmor can't be fetched.

    """
    variables = {
        "HOME": str(Path.home()),
        "TERM": os.environ.get("TERM", "dumb"),
        "XDG_CACHE_HOME": str(cache_dir().parent),
        "XDG_STATE_HOME": _STATE_HOME,
    }
    package = debs.unpacked(("apparmor",)).root
    return "\n".join(
        (
            "set -e",
            *(f"export {variable}={shlex.quote(value)}" for variable, value in variables.items()),
            shlex.join(["sh", str(_SCRIPT), str(ROOT), str(package), name]),
            shlex.join(["cd", str(ROOT)]),
            "",
        )
    )


def several(machines: int) -> tuple[str, Further]:
    """Return a script after which Kubernetes runs on several machines, and the machines except the first.

    Args:
        machines: Number of machines. With 1, the script is that of `preparation`, which starts no Kubernetes.

    Raises:
        UserError: A package can't be fetched.

    """
    if machines == 1:
        return preparation(), Further()
    debs.unpacked(shared_volumes.PACKAGES)
    authority = _authority()

    def joined(part: str, number: int, name: str) -> str:
        return f"{preparation(name)}{authority}.venv/bin/python -m tools.lab.joining {part} {number}\n"

    def joining(number: int, command: str) -> str:
        return f"{joined('further', number, f'n{number}')}{command}\nexec sleep infinity\n"

    return joined("first", machines, "n1"), Further(machines, joining, FURTHER_MEMORY_MIB, PROCESSORS)


def _authority() -> str:
    """Return a script that gives a machine a certificate authority, which all machines of a cluster have."""
    place = shlex.quote(f"{_STATE_HOME}/{state_dir().name}/kube/pki")
    with tempfile.TemporaryDirectory() as folder:
        pair = Pki(Path(folder)).authority
        files = {path.name: path.read_text() for path in (pair.certificate, pair.key)}
    texts = "".join(f"cat > {place}/{name} <<'END'\n{text}END\n" for name, text in files.items())
    return f"(\numask 077\nmkdir -p {place}\n{texts})\n"
