"""`python -m tools.lab.joining first LAST` and `... further NUMBER`: make machines of the lab one Kubernetes.

The first machine has the control plane and the volumes, and routes between the others, as with the further machines of
`make up MACHINES=2`, which share a kernel. Both have the same certificate authority.
"""

import sys

from tools import console, images
from tools.console import step
from tools.kube import EmbeddedKubernetes, host_files, pod_network
from tools.kube.debs import tool
from tools.kube.kube_node import KubeNode
from tools.kube.settings import Settings
from tools.lab import shared_volumes
from tools.lab.further_machines import SWITCH

_JOIN_SECONDS = 900
"""Time for machines to start and to take their images, on a busy computer."""


def lead(last: int) -> None:
    """Start Kubernetes on the first machine, then the machines 2 to `last`, and wait until they have joined."""
    kubernetes = EmbeddedKubernetes()
    kubernetes.up()
    machines = [kubernetes.settings.further(number) for number in range(2, last + 1)]
    for machine in machines:
        _name_interface(f"vec{machine.number - 2}", machine.link)
        pod_network.route_to(machine)
    shared_volumes.serve(kubernetes.settings, machines)
    for machine in machines:
        with SWITCH.open("w") as switch:
            switch.write(f"{machine.number} on\n")
    for machine in machines:
        with step(f"Waiting until {machine.node} has joined"):
            for condition in ("create", "condition=Ready"):
                kubernetes.kubectl(
                    *("wait", f"--for={condition}", f"node/{machine.node}", f"--timeout={_JOIN_SECONDS}s"),
                    timeout_seconds=_JOIN_SECONDS + 30,
                )


def join(number: int) -> None:
    """Join the cluster of the first machine, with its volumes and with the images in the cache."""
    first = Settings()
    settings = first.further(number)
    for name in ("ca.crt", "ca.key"):
        host_files.link(settings.pki / name, first.pki / name)
    _name_interface("vec0", settings.uplink)
    node = KubeNode(settings)

    def prepare() -> None:
        shared_volumes.mount(settings, first)
        images.load(node)

    node.up({"node-agent": prepare})  # the kubelet comes next, and with it the first pod


def _name_interface(name: str, wanted: str) -> None:
    tool("ip").run("link", "set", name, "name", wanted)


def main() -> None:
    """Run the part of one machine."""
    part, number = sys.argv[1:]
    {"first": lead, "further": join}[part](int(number))


if __name__ == "__main__":
    sys.exit(console.run(main))
