"""Ways to spoil a valid description, each with the path at which the problem must be reported.

Mutations of different regions do not touch each other, so any set of them with one of each region gives exactly as
many problems as there are mutations.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.strategies import ED25519_KEY, Data

_TOO_LONG = "z" * 53


@dataclass(frozen=True)
class Mutation:
    """One thing made wrong."""

    region: str
    """The part that it spoils."""
    name: str
    spoil: Callable[[Data], str]
    """Changes the description and returns the path of the problem."""

    def __repr__(self) -> str:
        return f"{self.region}: {self.name}"


def _part(data: Data, path: str) -> Any:
    """Return the mapping or list at `a.b[0]`, made where it is missing."""
    at: Any = data
    for step in path.replace("[", ".[").split("."):
        if step.startswith("["):
            at = at[int(step[1:-1])]
        elif step:
            at = at.setdefault(step, {})
    return at


def _set(region: str, path: str, key: str, *values: object, problem: str = "") -> list[Mutation]:
    def spoiling(value: object) -> Callable[[Data], str]:
        def spoil(data: Data) -> str:
            _part(data, path)[key] = value
            return problem or f"{path}.{key}".removeprefix(".")

        return spoil

    return [Mutation(region, f"{path}.{key} = {value!r}", spoiling(value)) for value in values]


def _drop(region: str, path: str, key: str) -> Mutation:
    def spoil(data: Data) -> str:
        _part(data, path).pop(key)
        return f"{path}.{key}"

    return Mutation(region, f"{path} without {key}", spoil)


def _append(region: str, where: str, problem: str, *items: Data) -> Mutation:
    """Append items to a list; `problem` is the path below the last one."""

    def spoil(data: Data) -> str:
        listed = data.setdefault(where, [])
        listed.extend(dict(item) for item in items)
        return f"{where}[{len(listed) - 1}].{problem}"

    return Mutation(region, f"{where} + {items!r}", spoil)


def _named_like_the_first(suffix: str) -> Mutation:
    def spoil(data: Data) -> str:
        data["node_sets"][1]["name"] = data["node_sets"][0]["name"] + suffix
        return "node_sets[1].name"

    return Mutation("set 1", f"name of the first{suffix}", spoil)


def _feature_named_like_the_first(data: Data) -> str:
    data["node_sets"][2]["features"] = [data["node_sets"][0]["name"]]
    return "node_sets[2].features[0]"


def _partition_twice(data: Data) -> str:
    data["partitions"] = [{"name": name} for name in (*_named_partitions(data)[:1], *_named_partitions(data)[:1])]
    return "partitions[1].name"


def _two_defaults(data: Data) -> str:
    data["node_sets"][0]["partitions"] = ["main", "gpu"]
    data["partitions"] = [{"name": "main", "default": True}, {"name": "gpu", "default": True}]
    return "partitions[1].default"


def _bad_option(key: str, value: object) -> Mutation:
    def spoil(data: Data) -> str:
        data["partitions"] = [{"name": _named_partitions(data)[0], "options": {key: value}}]
        return f"partitions[0].options.{key}"

    return Mutation("partitions", f"option {key} = {value!r}", spoil)


def _number_of_own_keys() -> list[Mutation]:
    """Number the generated keys of a cluster that has its own."""

    def spoiling(key: str) -> Callable[[Data], str]:
        def spoil(data: Data) -> str:
            _part(data, "secrets").update({key: {"secret": "mine"}, f"{key}_version": 2})
            return f"secrets.{key}_version"

        return spoil

    return [Mutation("secrets", f"{key} and its number", spoiling(key)) for key in ("munge_key", "ssh_host_key")]


def _named_partitions(data: Data) -> list[str]:
    return list(data["node_sets"][0].get("partitions", ["main"]))


def _submounts(problem: str, *submounts: Data, together: bool = False) -> list[Mutation]:
    """Set the submounts, each alone or all; `problem` is the path below the last one."""

    def spoiling(listed: list[Data]) -> Callable[[Data], str]:
        def spoil(data: Data) -> str:
            _part(data, "jail")["submounts"] = listed
            return f"jail.submounts[{len(listed) - 1}].{problem}".removesuffix(".")

        return spoil

    lists = [list(submounts)] if together else [[submount] for submount in submounts]
    return [Mutation("submounts", f"submounts {listed!r}", spoiling(listed)) for listed in lists]


def _resources(**amounts: Data) -> Data:
    return {"requests": {}, "limits": {}, **amounts}


def _somebody(**fields: object) -> Data:
    return {"name": "zoe", "uid": 61_001, **fields}


_ED25519, _BASE64, *_ = ED25519_KEY.split()

MUTATIONS: list[Mutation] = [
    *_set("name", "", "name", "HPC", "", "3d", "a" * 41, "a-", "a.b", 5, None, ["a"]),
    *_set("top", "", "nodesets", 1, {"a": 1}),
    *_set("top", "", "kubeconfig", "apiVersion: v1"),
    *_set("counts", "node_sets[0]", "replicas", -1, 2.5, "3", True, None, float("nan"), float("inf")),
    *_set("counts", "node_sets[0]", "replicas", 70_000, problem="node_sets"),
    *_set("counts", "slurm", "max_nodes", 0, 65_537, "64", 1.5),
    *_set("counts", "slurm", "max_script_kib", 15, 4097, "64"),
    *_set("counts", "slurm", "max_arguments_kib", 15, 1025, "64"),
    *_set("set 0", "node_sets[0]", "cpus", 0, "4", 1.5, True, 65_534, None),
    *_set("set 0", "node_sets[0]", "sockets", 0, "2", 1.5, 1025),
    *_set("set 0", "node_sets[0]", "cores_per_socket", 0, True),
    *_set("set 0", "node_sets[0]", "threads_per_core", 65, []),
    *_set("set 0", "node_sets[0]", "reserved_cores", -1, "1", 1.5, True, 65_533),
    *_set("set 0", "node_sets[0]", "memory_gib", "2G", 0, -1, True, [], float("nan"), float("inf")),
    *_set("set 0", "node_sets[0]", "memory", 8),
    *_set("set 0", "node_sets[0]", "ready_timeout_seconds", 0, "10m"),
    *_set(
        *("set 0", "node_sets[0]", "labels", {"app.kubernetes.io/name": "a"}),
        problem="node_sets[0].labels.app.kubernetes.io/name",
    ),
    *_set(
        *("set 0", "node_sets[0]", "annotations", {"soperator-pulumi/owner": "a"}),
        problem="node_sets[0].annotations.soperator-pulumi/owner",
    ),
    *_set("set 0", "node_sets[0]", "topology_spread", [{}], problem="node_sets[0].topology_spread[0].topology_key"),
    *_set(
        *("set 0", "node_sets[0]", "topology_spread", [{"topology_key": "a"}] * 2),
        problem="node_sets[0].topology_spread[1].topology_key",
    ),
    *_set(
        *("set 0", "node_sets[0]", "host_aliases", [{"ip": "10.0.0.0/8", "hostnames": ["a"]}]),
        problem="node_sets[0].host_aliases[0].ip",
    ),
    *_set(
        *("set 0", "node_sets[0]", "host_aliases", [{"ip": "10.0.0.1", "hostnames": []}]),
        *[[{"ip": "10.0.0.1", "hostnames": "a"}]],
        problem="node_sets[0].host_aliases[0].hostnames",
    ),
    *_set(
        *("set 0", "node_sets[0]", "service_account", {"name": "default"}),
        problem="node_sets[0].service_account.name",
    ),
    *_set(
        *("set 0", "node_sets[0]", "service_account", {"name": "a", "create": False, "annotations": {"a": "b"}}),
        problem="node_sets[0].service_account.annotations",
    ),
    *_set("set 0", "node_sets[0]", "job_token", {"audience": "sts.amazonaws.com"}),
    *_set("set 0", "node_sets[0]", "max_unready", -1, 1.5, "2", "101%", "10", True, None, float("nan"), float("inf")),
    *_set("set 0", "node_sets[0]", "wait_until_ready", "no", 0),
    *_set("drain", "node_sets[0]", "drain", "2h", None),
    *_set("drain", "node_sets[0].drain", "timeout", 600, "10", "2 h", "1m1h", "", "-1m", "1.5h", "366d", "2w", True),
    *_set("drain", "node_sets[0].drain", "grace", "0s", "29s", "366d", 300),
    *_set("drain", "node_sets[0].drain", "on_timeout", "kill", None, True),
    *_set("drain", "node_sets[0].drain", "not_requeueable", "requeue"),
    *_set("drain", "node_sets[0].drain", "reservations", "ignore"),
    *_set("drain", "node_sets[0].drain", "pending_jobs", False),
    *_set("drain", "node_sets[0].drain", "wait", "no", 1),
    *_set("drain", "node_sets[0].drain", "time_out", "2h"),
    *_set(
        "drain",
        "node_sets[0]",
        "drain",
        {"timeout": "8d", "on_timeout": "wait"},
        {"max_wait": "1h", "on_timeout": "wait"},
        problem="node_sets[0].drain.max_wait",
    ),
    *_set("rolling", "node_sets[0].rolling_update", "max_unavailable", 0, "0%", "101%", -1, 0.5, "3", None),
    *_set("rolling", "node_sets[0].rolling_update", "idle_wait", 60, "366d", "soon"),
    *_set("gpus", "node_sets[0]", "gpus", {}, {"type": "h100"}, 8, "8"),
    *_set("gpus", "node_sets[0]", "gpus", {"count": -1}, {"count": "8"}, problem="node_sets[0].gpus.count"),
    *_set("gpus", "node_sets[0]", "gpus", {"mig": {"1g.10gb": 1000}, "count": 1000, "type": "a"}),
    *_set(
        *("gpus", "node_sets[0]", "gpus", {"count": 1, "type": "h 100"}, {"count": 1, "type": "1g.10gb"}),
        problem="node_sets[0].gpus.type",
    ),
    *_set("gpus", "node_sets[0]", "gpus", {"count": 1, "mig": {"1g.10gb": 1}}, problem="node_sets[0].gpus.type"),
    *_set(
        *("gpus", "node_sets[0]", "gpus", {"count": 1, "resource": "gpu"}, {"count": 1, "resource": "intel.com/gpu"}),
        *({"count": 1, "resource": "nvidia.com/mig-1g.10gb"}, {"count": 1, "resource": "kubernetes.io/gpu"}),
        problem="node_sets[0].gpus.resource",
    ),
    *_set("gpus", "node_sets[0]", "gpus", {"mig": {"small": 7}}, problem="node_sets[0].gpus.mig.small"),
    *_set(
        *("gpus", "node_sets[0]", "gpus", {"mig": {"1g.10gb": 1, "2g.20gb": 1}}),
        {"resource": "amd.com/gpu", "mig": {"1g.10gb": 1}},
        problem="node_sets[0].gpus.mig",
    ),
    *_set(
        *("gpus", "node_sets[0]", "gpus", {"count": 1, "shards_per_gpu": 1}),
        {"mig": {"1g.10gb": 1}, "shards_per_gpu": 2},
        problem="node_sets[0].gpus.shards_per_gpu",
    ),
    *_set("gpus", "node_sets[0]", "gpus", {"count": 1, "sockets": [-1]}, problem="node_sets[0].gpus.sockets[0]"),
    *_set("rdma", "node_sets[0]", "rdma", {}, {"resource": "hca"}, problem="node_sets[0].rdma.resource"),
    *_set("rdma", "node_sets[0]", "rdma", {"resource": "rdma/hca", "count": 0}, problem="node_sets[0].rdma.count"),
    *_set("rdma offers", "platform", "rdma_resources", 5, True, "rdma/hca"),
    *_set("resources", "node_sets[0]", "extra_resources", {"fuse": 1}, problem="node_sets[0].extra_resources.fuse"),
    *_set("resources", "node_sets[0]", "extra_resources", {"a.b/c": 0}, problem="node_sets[0].extra_resources.a.b/c"),
    *_set("pages", "node_sets[0]", "huge_pages", {"2Mi": "3Mi"}, {"2Mi": 4}, problem="node_sets[0].huge_pages.2Mi"),
    *_set("pages", "node_sets[0]", "huge_pages", {"2M": "4Mi"}, problem="node_sets[0].huge_pages.2M"),
    *_set("runtime", "node_sets[0]", "runtime_class", "Nvidia"),
    *_set(
        *("networks", "node_sets[0]", "networks", ["rail_0"], ["a/b/c"], ["rail-0@net1"], ["a.b"], ["default/"]),
        problem="node_sets[0].networks[0]",
    ),
    *_set("variables", "node_sets[0]", "environment", {"A B": 1}, problem="node_sets[0].environment.A B"),
    *_set("variables", "node_sets[0]", "environment", {"SLURM_X": "1"}, problem="node_sets[0].environment.SLURM_X"),
    *_set("variables", "node_sets[0]", "environment", {"PATH": "/bin"}, problem="node_sets[0].environment.PATH"),
    *_set("variables", "node_sets[0]", "environment", {"A": "b\nc"}, {"A": True}, problem="node_sets[0].environment.A"),
    *_set("variables", "node_sets[0]", "environment", "A=b"),
    *_set("topology", "node_sets[0]", "nccl_topology", "/etc/topology.xml", ""),
    *_set("set 0", "node_sets[0]", "priority_class", "Not A Name", 5),
    *_set("set 0", "node_sets[0]", "features", ["a", "a"], problem="node_sets[0].features[1]"),
    *_set("set 0", "node_sets[0]", "features", ["a b"], problem="node_sets[0].features[0]"),
    *_set("set 0", "node_sets[0]", "node_selector", {"a": "b c"}, problem="node_sets[0].node_selector.a"),
    *_set("set 0", "node_sets[0]", "node_selector", {"a b": "c"}, problem="node_sets[0].node_selector.a b"),
    *_set("set 0", "node_sets[0]", "affinity", {"nodeaffinity": {}}, {"podAffinity": []}, "zone-a"),
    *_set(
        "set 0",
        "node_sets[0]",
        "tolerations",
        [{"key": "a", "effect": "Nope"}],
        problem="node_sets[0].tolerations[0].effect",
    ),
    *_set("set 0", "node_sets[0]", "tolerations", [{}], problem="node_sets[0].tolerations[0].key"),
    *_set(
        "set 0",
        "node_sets[0]",
        "pod_resources",
        _resources(requests={"cpu": "2x"}),
        problem="node_sets[0].pod_resources.requests.cpu",
    ),
    *_set(
        "set 0",
        "node_sets[0]",
        "pod_resources",
        _resources(limits={"memory": 4}),
        problem="node_sets[0].pod_resources.limits.memory",
    ),
    *_set(
        "set 0",
        "node_sets[0]",
        "pod_resources",
        _resources(requests={"memory": "2Gi"}, limits={"memory": "2G"}),
        problem="node_sets[0].pod_resources.requests.memory",
    ),
    _drop("set 0", "node_sets[0]", "cpus"),
    _drop("set 0", "node_sets[0]", "memory_gib"),
    *_set(
        "set 1",
        "node_sets[1]",
        "name",
        "controller",
        "login",
        "nodes",
        "all",
        "login-0",
        "GPU",
        "a_b",
        "a-",
        _TOO_LONG,
        "",
        5,
    ),
    _named_like_the_first(""),
    _named_like_the_first("-7"),
    _drop("set 1", "node_sets[1]", "name"),
    Mutation("set 2", "a feature named like another set", _feature_named_like_the_first),
    _append("partitions", "partitions", "name", {"name": "ghost"}),
    _append("partitions", "partitions", "name", {"name": "no blanks"}),
    _append("partitions", "partitions", "name", {"name": "Default"}),
    Mutation("partitions", "twice", _partition_twice),
    Mutation("partitions", "two defaults", _two_defaults),
    _bad_option("Nodes", "ALL"),
    _bad_option("prioritytire", 5),
    _bad_option("MaxTime", "2d"),
    _bad_option("MaxNodes", "four"),
    _bad_option("LLN", "maybe"),
    _bad_option("AllowGroups", "a#b"),
    _bad_option("AllowGroups", "a\nPartitionName=b"),
    _append("users", "users", "uid", _somebody(), {"name": "zed", "uid": 61_001}),
    _append("users", "users", "name", _somebody(), {"name": "zoe", "uid": 61_002}),
    *(
        _append("users", "users", "uid", _somebody(uid=uid))
        for uid in (0, 999, 64_030, 64_031, 65_534, 65_535, -5, "61001", 1.5)
    ),
    *(
        _append("users", "users", "name", _somebody(name=name))
        for name in ("root", "Zoe", "1z", "", "z" * 33, ".z", "sudo", 7)
    ),
    # Whether users share a gid by mistake is not known while the gid of a group is not.
    _append("groups", "users", "gid", {"name": "zina", "uid": 61_011}, {"name": "zeno", "uid": 61_012, "gid": 61_011}),
    _append("users", "users", "groups[0]", _somebody(groups=["nobodys"])),
    *(
        _append("users", "users", "ssh_keys[0]", _somebody(ssh_keys=[key]))
        for key in (
            "",
            "  ",
            "not a key",
            _BASE64,
            _ED25519,
            ED25519_KEY[:60],
            f"ssh-rsa {_BASE64}",
            f"{ED25519_KEY}\n{ED25519_KEY}",
            f'command="/bin/true {ED25519_KEY}',
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----",
            5,
        )
    ),
    _append("users", "users", "shell", _somebody() | {"shell": "bash"}),
    _append("users", "users", "shell", _somebody() | {"shell": "/bin/sh:/bin/x"}),
    _append("groups", "groups", "gid", {"name": "zebras", "gid": 61_500}, {"name": "zoos", "gid": 61_500}),
    _append("groups", "groups", "name", {"name": "zebras", "gid": 61_500}, {"name": "zebras", "gid": 61_501}),
    _append("groups", "groups", "gid", {"name": "zebras", "gid": 12}),
    _append("groups", "groups", "gid", {"name": "zebras"}),
    *_set(
        "login",
        "login",
        "allowed_sources",
        ["10.0.0.1/8"],
        ["everybody"],
        ["10.0.0.0/33"],
        ["::ffff:10.0.0.0/104"],
        problem="login.allowed_sources[0]",
    ),
    *_set("login", "login", "allowed_source", ["10.0.0.0/8"]),
    *_set("egress", "network", "egress", ["Internet"], ["10.0.0.1/8"], [5], problem="network.egress[0]"),
    *_set(
        "closed_ports",
        "network",
        "closed_ports",
        ["0"],
        ["70000"],
        ["20-10"],
        ["10-"],
        ["http"],
        [6443.5],
        [True],
        problem="network.closed_ports[0]",
    ),
    *_set("health", "health", "interval", "5s", "2h", 60, "1"),
    *_set("health", "health", "timeout", "1s", "1m"),
    *_set("health", "health", "node_states", []),
    *_set("health", "health", "node_states", ["DOWN"], problem="health.node_states[0]"),
    *_set("health", "health.checks", "clock", {"limit": "5 s"}, problem="health.checks.clock.limit"),
    *_set("health", "health.checks", "clock", {"every": "30s"}, problem="health.checks.clock.every"),
    *_set("health", "health.checks", "clock", {"node_use": []}, problem="health.checks.clock.node_use"),
    *_set("health", "health.checks", "clock", {"failures": 0}, problem="health.checks.clock.failures"),
    *_set("health", "health.checks", "jail", {"action": "drain"}, problem="health.checks.jail.action"),
    *_set("health", "health.checks", "slurmd", {"action": "drain_and_replace"}, problem="health.checks.slurmd.action"),
    *_set("health", "health.checks", "gpu_count", {"limit": 4}, problem="health.checks.gpu_count.limit"),
    *_set("health", "health.checks", "gpu_xid", {"limit": 4}, problem="health.checks.gpu_xid.limit"),
    *_set("health", "health.checks", "program", {"failures": 1}, problem="health.checks.program"),
    *_set("hooks", "", "hooks", 1),
    *_set("hooks", "", "hooks", {"prolog": {"A": {"script": "x"}}}, problem="hooks.prolog.A"),
    *_set("hooks", "", "hooks", {"prolog": {"a": {"script": " "}}}, problem="hooks.prolog.a.script"),
    *_set("hooks", "", "hooks", {"prolog": {"a": {"script": "x", "timeout": "1h"}}}, problem="hooks.prolog.a.timeout"),
    *_set(
        "hooks", "", "hooks", {"epilog": {"a": {"script": "x", "action": "requeue"}}}, problem="hooks.epilog.a.action"
    ),
    *_set("hooks", "", "hooks", {"ours": {"drop": {}}}, problem="hooks.ours.drop"),
    *_set("hooks", "", "hooks", {"ours": {"map_gpus": {"action": "log"}}}, problem="hooks.ours.map_gpus"),
    *_set("hooks", "", "hooks", {"job_mapping": "a/b"}, problem="hooks.job_mapping"),
    *_set("health", "health", "program", {"script": ""}, {"script": " \n"}, problem="health.program.script"),
    *_set("health", "health", "program", {"script": "exit", "timeout": "11s"}, problem="health.program.timeout"),
    *_set("api_servers", "network", "api_servers", ["kubernetes.default"], problem="network.api_servers[0]"),
    *_set("login", "login", "service", "loadbalancer", None),
    *_set("login", "login", "replicas", -1, 2.5),
    *_set("constrain", "slurm", "constrain", "cgroups", True),
    *_set("version", "slurm", "version", "24.5", 24.11),
    *_set("extra", "slurm", "extra", {"PlugStackConfig": "/x"}, problem="slurm.extra.PlugStackConfig"),
    *_set("extra", "slurm", "extra", {"plugstackconfig": "/x"}, problem="slurm.extra.plugstackconfig"),
    *_set("extra", "slurm", "extra", {"KillWiat": 5}, problem="slurm.extra.KillWiat"),
    *_set("extra", "slurm", "extra", {"KillWait": "5s"}, problem="slurm.extra.KillWait"),
    *_set("extra", "slurm", "extra", {"KillWait": 5, "killwait": 6}, problem="slurm.extra.killwait"),
    *_set("extra", "slurm", "extra", {"Prolog": "/bin/true\nNodeName=x"}, problem="slurm.extra.Prolog"),
    *_set("extra", "slurm", "extra", {"Prolog": '/bin/true" x'}, problem="slurm.extra.Prolog"),
    *_set("extra", "slurm", "extra", {"Prolog": ["/bin/true"]}, problem="slurm.extra.Prolog"),
    *_set("extra", "slurm", "extra", ["KillWait=5"], "KillWait=5"),
    *_set("images", "images", "worker", "", "Not An Image", "a b", 5, None, "user:password@registry/worker:1"),
    *_set("images", "images", "pull_policy", "never"),
    _drop("images", "images", "munge"),
    *_set("jail source", "jail", "source", {}, problem="jail.source"),
    *_set("jail source", "jail", "source", {"image": "Not An Image"}, problem="jail.source.image"),
    *_set(
        "jail source",
        "jail",
        "source",
        {"image": "a", "tarball": {"url": "https://a.example/b", "sha256": "0" * 64}},
        problem="jail.source",
    ),
    *(
        mutation
        for url in ("ftp://a.example/b", "https://user:password@a.example/b", "/root.tar", "https://a.example/b#c", "")
        for mutation in _set(
            "jail source",
            "jail",
            "source",
            {"tarball": {"url": url, "sha256": "0" * 64}},
            problem="jail.source.tarball.url",
        )
    ),
    *_set(
        "jail source",
        "jail",
        "source",
        {"tarball": {"url": "https://a.example/b", "sha256": "A" * 64}},
        {"tarball": {"url": "https://a.example/b", "sha256": 5}},
        problem="jail.source.tarball.sha256",
    ),
    *_set("jail", "jail", "active", "0123456789AB", "0123", 5),
    *_set("jail", "jail", "keep_trees", 0, 1.5, "2"),
    *_set("jail", "jail", "changes", "carry-over", None),
    *_set("jail", "jail", "isolation", {"pids": True}, problem="jail.isolation.pids"),
    *_set("jail", "jail", "isolation", {"pid": "yes"}, problem="jail.isolation.pid"),
    *_set("jail", "jail", "admin_shell", "yes"),
    *_set("jail", "jail", "app_armor", "Unconfined", True),
    *_set("jail populate", "jail.populate", "limit_mib_per_second", 0, 1.5, "10M"),
    *_set("jail populate", "jail.populate", "tolerations", [{}], problem="jail.populate.tolerations[0].key"),
    *_set("jail populate", "jail.populate", "processes", 4),
    *_set(
        "jail populate",
        "jail.populate",
        "pod_resources",
        _resources(requests={"cpu": 2}, limits={"cpu": 1}),
        problem="jail.populate.pod_resources.requests.cpu",
    ),
    *_set("jail storage", "jail", "storage", {"size_gib": 0}, problem="jail.storage.size_gib"),
    *_set("jail storage", "jail", "storage", {"accept": {"owners": "no"}}, problem="jail.storage.accept.owners"),
    *_set("jail storage", "jail", "storage", {"accept": {"flock": ""}}, problem="jail.storage.accept.flock"),
    *_set(
        "jail storage",
        "jail",
        "storage",
        {"existing_claim": "a", "static_volume": "b"},
        problem="jail.storage.static_volume",
    ),
    *_set(
        "jail storage",
        "jail",
        "storage",
        {"existing_claim": "a", "storage_class": "b"},
        problem="jail.storage.storage_class",
    ),
    *_submounts("path", {"path": "data", "scratch_gib": 1}, {"path": "/data/", "scratch_gib": 1}),
    *_submounts("path", {"path": "/etc/x", "scratch_gib": 1}, {"path": "/usr", "scratch_gib": 1}),
    *_submounts("path", {"path": "/zdata", "scratch_gib": 1}, {"path": "/zdata", "scratch_gib": 1}, together=True),
    *_submounts("path", {"path": "/zdata", "scratch_gib": 1}, {"path": "/zdata/x", "scratch_gib": 1}, together=True),
    *_submounts("roles", {"path": "/zdata", "scratch_gib": 1, "roles": []}),
    *_submounts("roles", {"path": "/zdata", "scratch_gib": 1, "roles": ["login", "login"]}),
    *_submounts("roles[0]", {"path": "/zdata", "scratch_gib": 1, "roles": ["controller"]}),
    *_submounts("roles", {"path": "/home", "host_path": "/homes", "roles": ["login"]}),
    *_submounts("roles", {"path": "/var/spool/slurmd", "scratch_gib": 1}),
    *_submounts("node_sets[0]", {"path": "/zdata", "scratch_gib": 1, "node_sets": ["no-such-set"]}),
    *_submounts("node_sets", {"path": "/zdata", "scratch_gib": 1, "node_sets": []}),
    *_submounts("", {"path": "/zdata"}),
    *_submounts("host_path", {"path": "/zdata", "host_path": "/x", "existing_claim": "data"}),
    *_submounts("host_path", {"path": "/zdata", "host_path": "/var/lib"}, {"path": "/zdata", "host_path": "/"}),
    *_submounts("scratch_gib", {"path": "/zdata", "scratch_gib": 0}, {"path": "/home", "scratch_gib": 5}),
    *_submounts("memory_gib", {"path": "/zdata", "memory_gib": 100_000, "roles": ["worker"]}),
    *_submounts("memory_gib", {"path": "/zdata", "memory_gib": "1Gi"}),
    *_submounts("sub_path", {"path": "/zdata", "scratch_gib": 1, "sub_path": "a"}),
    *_submounts("sub_path", {"path": "/zdata", "existing_claim": "data", "sub_path": "../a"}),
    *_submounts("read_only", {"path": "/zdata", "scratch_gib": 1, "read_only": True}),
    *_submounts("read_only", {"path": "/home", "existing_claim": "data", "read_only": True}),
    *_submounts("existing_claim", {"path": "/var/spool/slurmd", "existing_claim": "data", "roles": ["worker"]}),
    *_submounts("size_gib", {"path": "/zdata", "scratch_gib": 1, "size_gib": 1}),
    *_set("storage", "storage", "homes", {"size_gib": 10}, 5),
    *_set("storage", "storage.state", "size_gib", 0, "100Gi", 1.5),
    *_set("storage", "storage", "keep", "yes", 1),
    *_set("secrets", "secrets", "munge_key", "c2VjcmV0", {}, problem="secrets.munge_key")[:1],
    *_set("secrets", "secrets", "munge_key", {"key": "k"}, problem="secrets.munge_key.secret"),
    *_number_of_own_keys(),
    *_set("labels", "labels", "app.kubernetes.io/name", "x"),
    *_set("labels", "labels", "a b", "x"),
]
