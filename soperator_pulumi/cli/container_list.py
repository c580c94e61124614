"""`soperator containers`: lists the container images for jobs."""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from soperator_pulumi.cli.any_command import Command, access_in, add_cluster, add_json, print_json
from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.kube.kube_api import Cluster
from soperator_pulumi.kube.pods import find_pods
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.operations.nodes.live_node_set import WORKER_CONTAINER
from soperator_pulumi.render import layout
from soperator_pulumi.spec.types.quantity import GIB
from soperator_pulumi.wording import printable

_WORKERS = {"app.kubernetes.io/part-of": "soperator-pulumi", "app.kubernetes.io/component": "worker"}
_DAY = 86_400
_IN_USE = {True: "in use", False: "not in use", None: "use unknown"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="list the shared images, users' own stores, and copies on nodes' disks")
    add_cluster(listing)
    add_json(listing)


def run(given: argparse.Namespace) -> int:
    """Print the images, and return the exit status."""
    return show(Cluster(access_in(given)), given.namespace, as_json=given.json)


def show(kube: Kube, namespace: str, *, as_json: bool) -> int:
    """Print the images of a cluster, and return the exit status.

    Raises:
        SoperatorError: No worker runs, or its image has no such program.
    """
    found = _listed(kube, namespace)
    if as_json:
        print_json(found)
    else:
        sys.stdout.writelines(f"{line}\n" for line in text(found, time.time()))
    return 0


def text(found: Mapping[str, Any], now: float) -> Iterator[str]:
    """Yield the lines of the screen."""
    yield "SHARED IMAGES" if found["published"] else "There are no shared images (containers.images)."
    for image in found["published"]:
        names = ", ".join(image["names"]) or f"{image['digest'][:19]} (removed from the list)"
        days = (now - image["filled_at"]) / _DAY
        yield f"  {names}: {_gib(image['size_bytes'])}, {days:.0f} days old, {_IN_USE[image['in_use']]}"
    if found["users"]:
        yield ""
        yield "STORES OF USERS"
        for store in found["users"]:
            counts = f"{store['images']} images, {store['named_containers']} named containers"
            yield f"  {printable(store['user'])}: {counts}, {_gib(store['size_bytes'])}"
    if nodes := found.get("nodes"):  # missing in answers of images before it
        yield ""
        yield "COPIES ON NODES' DISKS"
        yield from (f"  {node['node']}: {node['images']} copies, {_gib(node['size_bytes'])}" for node in nodes)


def _listed(kube: Kube, namespace: str) -> dict[str, Any]:
    """Return the images by running a command on a worker, whose container mounts the store and the homes."""
    running = [pod for pod in find_pods(kube, namespace, _WORKERS) if pod.runs(WORKER_CONTAINER)]
    if not running:
        raise SoperatorError(
            f"containers: no worker pod runs in the namespace {namespace}, and only workers see the images. Wait until "
            "one runs, or look at another namespace with -n."
        )
    answer = kube.transport(namespace, running[0].name, WORKER_CONTAINER).run([layout.LIST_IMAGES])
    if answer.returncode != 0:
        raise SoperatorError(
            f"containers: the pod {running[0].name} did not list images: {answer.message}. If its image is older than "
            "this command, upgrade the cluster first."
        )
    listed: dict[str, Any] = json.loads(answer.stdout)
    return listed


def _gib(size: int | None) -> str:
    return "size unknown" if size is None else f"{size / GIB:.2f} GiB"


COMMAND = Command(configure=configure, run=run, example="soperator containers list -n hpc --json")
