"""A cluster of as many node sets as the configuration says."""

import gc

gc.disable()  # as the program of the stacks does, and docs/programs.md recommends

import pulumi  # noqa: E402 - as above

from soperator_pulumi import SlurmCluster  # noqa: E402

gc.freeze()

names = ("controller", "worker", "login", "accounting", "database", "munge", "jail_tools", "jail")
SlurmCluster(
    "hpc",
    {"images": {name: f"registry.example.com/{name}:1" for name in names}},
    node_sets=[
        {"name": f"n{number}", "cpus": 4, "memory_gib": 8}
        for number in range(pulumi.Config("bench").require_int("count"))
    ],
)
