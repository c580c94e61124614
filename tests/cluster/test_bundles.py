"""Programs given to a jail run in any: Slurm's clients and our Python, in an older, a newer and next to no Debian."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.root_trees import BOOKWORM, BUSYBOX, FORKY
from tests.cluster.slurm import unique
from tests.conftest import Kubernetes
from tools import images

pytestmark = pytest.mark.cluster

NAMESPACE = unique("test-bundles")
TREES = {"bookworm": BOOKWORM, "forky": FORKY, "busybox": BUSYBOX}
"""Root filesystems without any Slurm: one with a libc that is older than ours, one with a newer one, one with none."""

TOOLS = "/.jail-tools"
ALICE = 2001
FOREIGN = "LD_LIBRARY_PATH=/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib/aarch64-linux-gnu:/usr/lib"
"""Setting of many users: the libraries of the tree come before those that a RUNPATH names."""

SQUEUE = "/opt/slurm/bin/squeue"

SLURM_CONF = """\
ClusterName=test
SlurmctldHost=nowhere(127.0.0.1)
SlurmUser=slurm
AuthType=auth/munge
NodeName=node
PartitionName=main Nodes=node
"""
PASSWD = f"slurm:x:64030:64030::/:/bin/false\nalice:x:{ALICE}:{ALICE}::/home/alice:/bin/sh\n"
GROUP = f"slurm:x:64030:\nalice:x:{ALICE}:\n"

EVERY_PROGRAM = """\
for program in /opt/slurm/bin/*; do
    case $program in
    */sreport) ;; # says its version only where there is a slurmdbd
    *) "$program" --version || { echo "$program gave $?"; exit 1; } ;;
    esac
done
"""
EVERYTHING_NEEDED = """\
import argparse, bz2, concurrent.futures, ctypes, hashlib, json, lzma, multiprocessing, socket, ssl, tarfile, threading
import urllib.request, zlib
import jail_tools
assert len(ssl.create_default_context().get_ca_certs()) > 100
with multiprocessing.Pool(2) as pool:
    assert pool.map(hashlib.new, ["sha256"] * 0) == []
    assert pool.map(abs, [-1, -2]) == [1, 2]
"è".encode("idna")
ctypes.CDLL(None, use_errno=True).getpid()
print(hashlib.sha256(b"").hexdigest()[:8])
"""


@pytest.fixture(scope="module")
def namespace(kubernetes: Kubernetes, built_images: None) -> Iterator[str]:
    """Give a namespace with a pod of each tree, in which both bundles are, and one of our Python alone."""
    assert kubernetes.target.embedded, "the trees are brought to the embedded cluster only"
    pods = [pod(name, tree.bring_to(kubernetes.target.embedded)) for name, tree in TREES.items()]
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        configuration("users", {"passwd": PASSWD, "group": GROUP}),
        configuration("slurm", {"slurm.conf": SLURM_CONF}),
        *pods,
        python_alone(),
    ]
    kubernetes.run("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    kubernetes.run("wait", "-n", NAMESPACE, "pod", "--all", "--for=condition=Ready", "--timeout=90s")
    yield NAMESPACE
    kubernetes.throw_away(NAMESPACE)


@pytest.fixture(params=TREES)
def tree(request: pytest.FixtureRequest, namespace: str) -> str:
    """Name the pod of one tree after the other."""
    name: str = request.param
    return name


def sh(kubernetes: Kubernetes, tree: str, script: str) -> str:
    """Run a script in the pod of a tree and return what it prints, errors too."""
    return kubernetes.exec(NAMESPACE, tree, "tree", "sh", "-c", f"exec 2>&1\n{script}")


def test_every_client_starts(kubernetes: Kubernetes, tree: str) -> None:
    said = sh(kubernetes, tree, EVERY_PROGRAM).splitlines()

    assert set(said) == {said[0]}
    assert said[0].startswith("slurm-wlm 24.11.")
    assert len(said) > 12


def test_clients_find_their_plugins(kubernetes: Kubernetes, tree: str) -> None:
    listed = sh(kubernetes, tree, "/opt/slurm/bin/srun --mpi=list").split()

    assert {"none", "pmi2", "pmix", "pmix_v5"} <= set(listed)


def test_clients_do_not_care_for_libraries_of_the_tree(kubernetes: Kubernetes, tree: str) -> None:
    assert sh(kubernetes, tree, f"{FOREIGN} /opt/slurm/bin/srun --version").startswith("slurm-wlm ")


def test_clients_know_users_that_the_tree_does_not_know(kubernetes: Kubernetes, tree: str) -> None:
    # Names are looked up before slurmctld is, which there is none of here.
    assert "Invalid user: nobody-there" in sh(kubernetes, tree, f"timeout 30 {SQUEUE} --user nobody-there; true")
    assert "Invalid user" not in sh(kubernetes, tree, f"timeout 5 {SQUEUE} --user alice; true")


def test_our_python_has_what_the_commands_need(kubernetes: Kubernetes, tree: str) -> None:
    certificates = f"SSL_CERT_FILE={TOOLS}/ca-certificates.crt"
    run = f"{certificates} {FOREIGN} {TOOLS}/bin/python3 -I -"

    assert sh(kubernetes, tree, f"{run} <<'EOF'\n{EVERYTHING_NEEDED}\nEOF") == "e3b0c442\n"


def test_our_python_takes_nothing_from_the_tree(kubernetes: Kubernetes, tree: str) -> None:
    libraries = "print(sorted({line.split()[-1] for line in open('/proc/self/maps') if '.so' in line}))"
    said = sh(kubernetes, tree, f'{TOOLS}/bin/python3 -I -c "import sys, ssl; print(sys.path); {libraries}"')

    assert all(path.startswith(f"'{TOOLS}/lib/") for line in said.splitlines() for path in line.strip("[]").split(", "))


def test_our_python_runs_where_there_is_nothing_else(kubernetes: Kubernetes, namespace: str) -> None:
    script = f"import os; print(sorted(os.listdir('/'))); {'; '.join(EVERYTHING_NEEDED.splitlines()[:2])}"
    said = kubernetes.exec(namespace, "python", "python", f"{TOOLS}/bin/python3", "-I", "-c", script)

    assert {"bin", "lib", "usr"}.isdisjoint(json.loads(said.replace("'", '"')))


def pod(name: str, image: str) -> dict[str, Any]:
    """Return a pod of a tree, into which the bundles are copied as they are into pods of a cluster."""
    references = images.references()
    volumes = {"client": "/opt/slurm", "tools": TOOLS}
    return a_pod(
        name,
        [
            {
                "name": "client",
                "image": references["login"],
                "args": ["cp", "-a", "/opt/slurm/.", "/client"],
                "volumeMounts": [{"name": "client", "mountPath": "/client"}],
            },
            {
                "name": "tools",
                "image": references["jail_tools"],
                "args": ["install", "/tools"],
                "volumeMounts": [{"name": "tools", "mountPath": "/tools"}],
            },
        ],
        {
            "name": "tree",
            "image": image,
            "command": ["sleep", "3600"],
            "volumeMounts": [
                *({"name": volume, "mountPath": path, "readOnly": True} for volume, path in volumes.items()),
                {"name": "users", "mountPath": "/var/lib/extrausers"},
                {"name": "slurm", "mountPath": "/etc/slurm"},
            ],
        },
        [
            *({"name": volume, "emptyDir": {}} for volume in volumes),
            *({"name": name, "configMap": {"name": name}} for name in ("users", "slurm")),
        ],
    )


def python_alone() -> dict[str, Any]:
    """Return a pod whose root filesystem has our Python and nothing else."""
    wait = [f"{TOOLS}/bin/python3", "-I", "-c", "import signal; signal.pause()"]
    return a_pod("python", [], {"name": "python", "image": images.references()["jail_tools"], "command": wait}, [])


def a_pod(
    name: str, init: list[dict[str, Any]], container: dict[str, Any], volumes: list[dict[str, Any]]
) -> dict[str, Any]:
    unprivileged = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 0,
            "initContainers": [{**entry, "securityContext": unprivileged} for entry in init],
            "containers": [{**container, "securityContext": unprivileged}],
            "volumes": volumes,
        },
    }


def configuration(name: str, content: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": content}
