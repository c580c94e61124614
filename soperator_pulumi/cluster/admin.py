"""The admin shell: root in the jail, to install packages and add users, without access to Slurm or Kubernetes."""

import pulumi
from pulumi_kubernetes.apps.v1 import StatefulSet, StatefulSetSpecArgs
from pulumi_kubernetes.core.v1 import ContainerArgs, PodTemplateSpecArgs
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.containers import asks, give_modes, hardened, prepare, requirements
from soperator_pulumi.cluster.mounts import Mount, with_submounts
from soperator_pulumi.cluster.pod_template import NODES_SERVICE, ROOTS_PORTS, Parts, pod_metadata, pod_spec
from soperator_pulumi.cluster.scope import NOT_AWAITED, Scope
from soperator_pulumi.render import layout
from soperator_pulumi.render.jail import active_tree
from soperator_pulumi.spec.submount import SubmountRole
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts

ADMIN = "admin"
"""Name of the StatefulSet and of its container, and component label of its pod."""

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP", "SETGID", "SETUID", "KILL")
"""Capabilities for packages and useradd: handle files of any owner and mode, and become the users of installers."""

TREE_DIRECTORIES = ("etc", "opt", "root", "srv", "usr", "var")
"""Directories of the tree that are mounted at the same paths, as the image lacks them. The pod's root is writable for
the links that most distributions have (`/bin`, `/lib`)."""

_TEMPORARY_SIZE = "64Gi"
"""Size of /tmp: several times what the largest installers unpack there, some 10 GiB for CUDA's."""

_RESOURCES = PodResources(requests=ResourceAmounts(cpu="50m", memory="128Mi"), limits=ResourceAmounts(memory="4Gi"))


class AdminShell(pulumi.ComponentResource):
    """A pod, `admin-0`, with the active tree as its writable root filesystem, for the time of a session."""

    stateful_set: StatefulSet
    """The StatefulSet `admin`, without replicas unless `jail.admin_shell` is true. `make admin` scales it for a
    session."""

    def __init__(self, name: str, *, scope: Scope, parts: Parts, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("soperator-pulumi:index:AdminShell", name, {}, opts)
        own = scope.within(self)
        self.stateful_set = StatefulSet(
            name,
            metadata=own.metadata(ADMIN, ADMIN, annotations=NOT_AWAITED),
            spec=StatefulSetSpecArgs(
                service_name=NODES_SERVICE,
                replicas=1 if parts.spec.jail.admin_shell else 0,
                selector=LabelSelectorArgs(match_labels=own.selector(ADMIN)),
                template=_template(own, parts),
            ),
            opts=own.options(),
        )
        self.register_outputs({})


def _template(scope: Scope, parts: Parts) -> PodTemplateSpecArgs:
    spec = parts.spec
    # The admin sees what the sessions of all login nodes see: the pod's machine may lack the rest.
    places = with_submounts(_mounts(parts), spec, SubmountRole.LOGIN, *spec.login.by_name)
    shell = ContainerArgs(
        name=ADMIN,
        image=spec.images.jail_tools,
        image_pull_policy=spec.images.pull_policy,
        command=[*layout.JAIL_TOOLS, "admin"],
        security_context=hardened(capabilities=CAPABILITIES, writable_root=True),
        resources=requirements(_RESOURCES),
        # Proof of the links to the tree: the image has no shell of its own.
        startup_probe=asks("/bin/sh", "-c", "exit 0", period=1, failures=60),
        volume_mounts=[place.in_container() for place in places],
    )
    open_directories = [place for place in places if place.needs_mode]
    modes = prepare(spec, spec.images.login, give_modes(open_directories, []), open_directories)
    return PodTemplateSpecArgs(
        metadata=pod_metadata(scope, ADMIN),
        spec=pod_spec(
            spec,
            spec.controller,
            containers=[shell],
            init_containers=[modes] if open_directories else [],
            mounts=places,
            sysctls=[ROOTS_PORTS],
        ),
    )


def _mounts(parts: Parts) -> list[Mount]:
    claim, tree = parts.jail.name, f"{layout.TREES_IN_JAIL}/{active_tree(parts.spec)}"
    return [
        *(mounts.claim("jail", claim, f"/{name}", f"{tree}/{name}") for name in TREE_DIRECTORIES),
        mounts.claim("jail", claim, layout.ADMIN_TREE, tree),
        mounts.claim("jail", claim, layout.HOMES_DIR, layout.HOMES_IN_JAIL),
        mounts.scratch("tmp", layout.TEMPORARY_DIR, _TEMPORARY_SIZE),
    ]
