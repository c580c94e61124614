"""Valid descriptions of clusters for property tests, as a user writes them and as models."""

import base64
import math
from typing import Any

from hypothesis import strategies as st

from soperator_pulumi.spec.cluster import ClusterSpec, parse_cluster

Data = dict[str, Any]

ED25519_KEY = (
    "ssh-ed25519 "
    + base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + bytes(range(32))).decode()
    + " somebody@example"
)

_IMAGES = ("controller", "worker", "login", "accounting", "database", "munge", "jail_tools", "jail")
IMAGES = {name: f"registry.example/soperator/{name.replace('_', '-')}:1" for name in _IMAGES}


def a_cluster(**overrides: Any) -> Data:
    """A small valid description; the keys that a test is about replace those of it."""
    return {
        "name": "hpc",
        "images": dict(IMAGES),
        "node_sets": [{"name": "cpu", "replicas": 2, "cpus": 4, "memory_gib": 8}],
        "users": [{"name": "alice", "uid": 2001, "ssh_keys": [ED25519_KEY]}],
        **overrides,
    }


def a_spec(**overrides: Any) -> ClusterSpec:
    """The model of `a_cluster`."""
    return parse_cluster(a_cluster(**overrides))


# No name ends in "-<number>", which may be a node of another set, and none is reserved: all begin with "z".
_NODE_SET_NAMES = st.from_regex(r"z[a-z0-9]{0,8}(-[a-z]{1,40})?", fullmatch=True)
_PARTITION_NAMES = st.sampled_from(["main", "gpu", "long_jobs", "Debug", "v1.2", "all", "1day"])
_FEATURES = st.sampled_from(["avx512", "ib", "rack_7", "A100", "40gb"])
_GROUP_NAMES = st.sampled_from(["ml", "physics", "bio-lab", "_staff"])
_USER_NAMES = st.from_regex(r"y([a-z0-9_.-]{0,30}[a-z0-9_-])?", fullmatch=True)
_IDS = st.one_of(st.integers(1000, 60_000), st.integers(65_536, 4_294_967_293))
_LABELS = st.dictionaries(
    st.from_regex(r"(example\.com/)?[a-z]{1,10}", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9]{0,10}", fullmatch=True),
    max_size=2,
)

PARTITION_OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "MaxTime": st.sampled_from([90, "12:00:00", "2-00", "UNLIMITED"]),
        "prioritytier": st.integers(1, 100),
        "LLN": st.booleans(),
        "DefMemPerNode": st.integers(1, 10_000),
        "AllowGroups": st.just("ml,physics"),
        "State": st.sampled_from(["UP", "DRAIN"]),
    },
)

SLURM_EXTRA = st.fixed_dictionaries(
    {},
    optional={
        "KillWait": st.integers(1, 600),
        "schedulerparameters": st.just("bf_window=2880,bf_continue"),
        "PriorityFavorSmall": st.booleans(),
        "SlurmctldParameters": st.sampled_from(["enable_configless", "idle_on_node_suspend,enable_configless"]),
        "SlurmdParameters": st.just("l3cache_as_socket"),
        "LogTimeFormat": st.just("iso8601_ms"),
        "MailProg": st.just("/usr/bin/my mail"),
    },
)

_RESOURCES = st.fixed_dictionaries(
    {},
    optional={
        "requests": st.fixed_dictionaries(
            {}, optional={"cpu": st.sampled_from(["100m", 1, 0.5]), "memory": st.just("1Gi")}
        ),
        "limits": st.fixed_dictionaries(
            {}, optional={"cpu": st.sampled_from(["2", "2500m"]), "memory": st.just("2Gi")}
        ),
    },
)

_SCHEDULED = {
    "node_selector": _LABELS,
    "tolerations": st.lists(
        st.sampled_from(
            [
                {"operator": "Exists"},
                {"key": "example.com/gpu", "value": "yes", "effect": "NoSchedule"},
                {"key": "example.com/slow", "operator": "Exists", "effect": "NoExecute", "toleration_seconds": 30},
            ]
        ),
        max_size=2,
    ),
    "affinity": st.just(
        {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {}}]}}
    ),
    "priority_class": st.just("high-priority"),
    "pod_resources": _RESOURCES,
}


_DURATIONS = st.sampled_from(["30s", "10m", "2h", "1h30m"])
_SHARES = st.sampled_from([1, 12, "1%", "25%", "100%"])

_DRAIN = st.fixed_dictionaries(
    {},
    optional={
        "timeout": st.just("0s") | _DURATIONS,
        "on_timeout": st.sampled_from(["abort", "requeue", "cancel", "wait"]),
        "max_wait": st.sampled_from(["2h", "7d", "30d"]),
        "not_requeueable": st.sampled_from(["abort", "cancel"]),
        "reservations": st.sampled_from(["report", "refuse"]),
        "pending_jobs": st.sampled_from(["report", "refuse"]),
        "wait": st.booleans(),
        "grace": _DURATIONS,
    },
)


_GPUS = st.sampled_from(
    [
        {"count": 8, "type": "h100"},
        {"count": 4},
        {"count": 8, "type": "mi300x", "resource": "amd.com/gpu"},
        {"mig": {"1g.10gb": 7}},
        {"count": 7, "type": "a100", "mig": {"3g.40gb.me": 1}},
        {"count": 2, "type": "l4", "shards_per_gpu": 8},
    ]
)

_DEVICES = {
    "gpus": _GPUS,
    "rdma": st.sampled_from([{"resource": "rdma/hca_shared"}, {"resource": "vpc.amazonaws.com/efa", "count": 32}]),
    "extra_resources": st.just({"example.com/fuse": 1}),
    "runtime_class": st.just("nvidia"),
    "huge_pages": st.sampled_from([{"2Mi": "4Gi"}, {"1Gi": "16Gi", "2Mi": "512Mi"}]),
}


def _with_its_layout(node_set: Data) -> Data:
    """Return a node set with the CPUs of its layout, if it has one."""
    layout = node_set.pop("layout", None)
    return {**node_set, **layout, "cpus": math.prod(layout.values())} if layout else node_set


_LAYOUTS = st.fixed_dictionaries(
    {"sockets": st.integers(1, 8), "cores_per_socket": st.integers(1, 96), "threads_per_core": st.integers(1, 2)}
)


def _node_set(name: str) -> st.SearchStrategy[Data]:
    return st.fixed_dictionaries(
        {
            "name": st.just(name),
            "cpus": st.integers(1, 256),
            "memory_gib": st.one_of(st.integers(1, 4096), st.floats(0.125, 64)),
        },
        optional={
            "replicas": st.integers(0, 64),
            "partitions": st.lists(_PARTITION_NAMES, min_size=1, max_size=3, unique=True),
            "features": st.lists(_FEATURES, max_size=2, unique=True),
            "ready_timeout_seconds": st.integers(1, 3600),
            "max_unready": st.just(0) | _SHARES,
            "wait_until_ready": st.booleans(),
            "drain": _DRAIN,
            "rolling_update": st.fixed_dictionaries(
                {}, optional={"max_unavailable": _SHARES, "idle_wait": st.just("2h")}
            ),
            "environment": st.just({"NCCL_DEBUG": "INFO", "NCCL_MIN_NCHANNELS": 4}),
            "nccl_topology": st.just('<system version="1"><cpu numaid="0"/></system>\n'),
            "lock_memory": st.booleans(),
            "layout": _LAYOUTS,
            **_DEVICES,
            **_SCHEDULED,
        },
    ).map(_with_its_layout)


@st.composite
def _partitions(draw: st.DrawFn, node_sets: list[Data]) -> list[Data]:
    named = sorted({name for node_set in node_sets for name in node_set.get("partitions", ["main"])})
    declared = draw(st.lists(st.sampled_from(named), unique=True))
    partitions: list[Data] = [{"name": name, "options": draw(PARTITION_OPTIONS)} for name in declared]
    one_is_default: bool = draw(st.booleans())
    if partitions and one_is_default:
        draw(st.sampled_from(partitions))["default"] = True
    return partitions


@st.composite
def _people(draw: st.DrawFn) -> tuple[list[Data], list[Data]]:
    group_names = draw(st.lists(_GROUP_NAMES, unique=True))
    user_names = draw(st.lists(_USER_NAMES, unique=True, max_size=4))
    ids = draw(
        st.lists(
            _IDS, unique=True, min_size=len(group_names) + len(user_names), max_size=len(group_names) + len(user_names)
        )
    )
    groups: list[Data] = [{"name": name, "gid": gid} for name, gid in zip(group_names, ids, strict=False)]
    users: list[Data] = []
    for name, uid in zip(user_names, ids[len(groups) :], strict=True):
        user: Data = {"name": name, "uid": uid, "ssh_keys": draw(st.sampled_from([[], [ED25519_KEY]]))}
        shares_a_group: bool = draw(st.booleans())
        if groups and shares_a_group:
            user["gid"] = draw(st.sampled_from(groups))["gid"]
        if groups:
            user["groups"] = draw(st.lists(st.sampled_from(group_names), unique=True))
        users.append(user)
    return users, groups


_SUBMOUNTS: list[Data] = [
    {"path": "/data", "existing_claim": "data", "sub_path": "projects/a"},
    {"path": "/dev/shm", "memory_gib": 0.0625},
    {"path": "/mnt/local", "host_path": "/mnt/disks/ssd0", "roles": ["worker"]},
    {"path": "/reference", "existing_claim": "genomes", "read_only": True},
    {"path": "/tmp", "scratch_gib": 100},
    {"path": "/usr/local/cuda", "host_path": "/cuda", "roles": ["worker"], "read_only": True},
    {"path": "/var/spool/slurmd", "scratch_gib": 10, "roles": ["worker"]},
]


def _jails() -> st.SearchStrategy[Data]:
    return st.fixed_dictionaries(
        {},
        optional={
            "source": st.sampled_from(
                [
                    {"image": "registry.example/os:24.04"},
                    {"tarball": {"url": "https://files.example/root.tar.zst", "sha256": "0f" * 32}},
                ]
            ),
            "active": st.just("0123456789ab"),
            "keep_trees": st.integers(1, 5),
            "changes": st.sampled_from(["refuse", "carry_over", "leave_behind"]),
            "storage": st.sampled_from(
                [{"size_gib": 4096}, {"storage_class": "shared", "static_volume": "nfs"}, {"existing_claim": "jail"}]
            ),
            "submounts": st.lists(st.sampled_from(_SUBMOUNTS), unique_by=lambda item: item["path"]),
            "isolation": st.fixed_dictionaries(
                {}, optional={name: st.booleans() for name in ("pid", "ipc", "user_namespaces")}
            ),
            "populate": st.fixed_dictionaries({}, optional={"limit_mib_per_second": st.integers(1, 500), **_SCHEDULED}),
            "admin_shell": st.booleans(),
            "app_armor": st.sampled_from(["unconfined", "runtime", "localhost/slurm"]),
        },
    )


@st.composite
def cluster_data(draw: st.DrawFn, *, min_node_sets: int = 1) -> Data:
    """A valid description as a user writes it: mappings, lists and plain values."""
    names = draw(st.lists(_NODE_SET_NAMES, min_size=min_node_sets, max_size=4, unique=True))
    node_sets = [draw(_node_set(name)) for name in names]
    users, groups = draw(_people())
    optional = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "namespace": st.just("slurm"),
                "create_namespace": st.booleans(),
                "cluster_domain": st.sampled_from(["cluster.local", "k8s.example"]),
                "labels": _LABELS,
                "annotations": _LABELS,
                "slurm": st.fixed_dictionaries(
                    {},
                    optional={
                        "version": st.sampled_from(["24.11", "26.05"]),
                        "constrain": st.sampled_from(["cgroup", "none"]),
                        "max_nodes": st.integers(256, 65_536),
                        "extra": SLURM_EXTRA,
                    },
                ),
                "controller": st.fixed_dictionaries({}, optional=_SCHEDULED),
                "login": st.fixed_dictionaries(
                    {"allowed_sources": st.just(["10.0.0.0/8", "2001:db8::/32"])},
                    optional={
                        "replicas": st.integers(0, 4),
                        "service": st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer"]),
                        **_SCHEDULED,
                    },
                ),
                "jail": _jails(),
                "network": st.fixed_dictionaries(
                    {},
                    optional={
                        "egress": st.lists(
                            st.sampled_from(["internet", "private", "cluster", "198.51.100.0/24", "2001:db8::/32"])
                        ),
                        "closed_ports": st.lists(st.sampled_from([22, "2379-2381", "1-65535"])),
                        "api_servers": st.sampled_from([[], ["10.96.0.1/32"]]),
                    },
                ),
                "storage": st.fixed_dictionaries(
                    {},
                    optional={
                        "state": st.sampled_from([{"storage_class": "fast"}, {"existing_claim": "state"}]),
                        "keep": st.booleans(),
                    },
                ),
                "secrets": st.sampled_from([{}, {"munge_key": {"secret": "my-munge", "key": "key"}}]),
            },
        )
    )
    slurm: Any = optional.get("slurm", {})
    if slurm.get("constrain") == "none":
        for node_set in node_sets:
            if "mig" in node_set.get("gpus", ()):
                del node_set["gpus"]
    return {
        "name": draw(st.from_regex(r"c[a-z0-9]{0,38}", fullmatch=True)),
        "images": dict(IMAGES),
        "node_sets": node_sets,
        "partitions": draw(_partitions(node_sets)),
        "users": users,
        "groups": groups,
        **optional,
    }


def cluster_specs() -> st.SearchStrategy[ClusterSpec]:
    """A valid description as a model."""
    return cluster_data().map(parse_cluster)
