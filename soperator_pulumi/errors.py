"""What can go wrong, as one tree of exceptions.

    SoperatorError
    ├── SpecError           the user's description of a cluster has problems
    ├── TransportError      a command may or may not have run
    ├── SlurmError          Slurm refused a command
    │   ├── NotRunningError          slurmctld does not answer
    │   ├── UnknownNodeError         no node of that name
    │   ├── NodesBusyError           jobs are on nodes that were to be deleted
    │   ├── NodesNotDeletedError     some nodes of a list are left
    │   ├── NodeExistsError          a node of that name is there already
    │   ├── NodeTableFullError       MaxNodeCount is reached
    │   ├── UnknownJobError          no job of that number
    │   └── JobEndedError            the job holds no node any more, or is about to leave
    ├── DrainError          nodes did not become free; what was drained for it is in service again
    ├── KubernetesError     the Kubernetes API is not reached, or refused
    ├── ConfigRefusedError  a daemon refused its new files; the old ones are in force
    ├── NotReadyError       a bounded wait ended without what it waited for
    └── JailError           the jail is not filled or not switched; what was active still is

Every message says where, what was given, what is allowed and what to do next, and holds no secret.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a spec."""

    path: str
    """Where, as a person writes it: `node_sets[1].replicas`. Empty for the spec as a whole."""

    text: str
    """What was given, what is allowed, and the next step, as full sentences."""

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class SoperatorError(Exception):
    """Base of all errors of this package."""


class SpecError(SoperatorError):
    """A spec has problems: all of them, in the order of their paths, in one message."""

    def __init__(self, where: str, problems: Iterable[Problem]) -> None:
        self.where = where
        """What the spec was given as: a configuration key such as `soperator:cluster`, or a component."""
        self.problems = tuple(problems)
        """At least one problem."""
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        super().__init__("\n".join([f"{where} has {count}:", *(f"  {problem}" for problem in self.problems)]))


class TransportError(SoperatorError):
    """A command was not run, or its answer did not arrive: nothing is known about what it did."""


class SlurmError(SoperatorError):
    """Slurm answered, and refused. The message holds its own words."""


class NotRunningError(SlurmError):
    """slurmctld does not answer its own client programs."""


class UnknownNodeError(SlurmError):
    """No node of that name; of a list that was to be changed, the others were."""


class NodesBusyError(SlurmError):
    """Jobs are on the nodes that were to be deleted."""


class NodesNotDeletedError(SlurmError):
    """Of a list of nodes to be deleted some are left: busy or unknown."""

    def __init__(self, words: str, left: Iterable[str]) -> None:
        super().__init__(words)
        self.left = frozenset(left)
        """Names of those that were not deleted, by Slurm's account: the others were."""


class NodeExistsError(SlurmError):
    """A node of that name is in the node table already."""


class NodeTableFullError(SlurmError):
    """The node table holds as many nodes as MaxNodeCount allows."""


class UnknownJobError(SlurmError):
    """No job of that number: it never was, or it ended so long ago that slurmctld has forgotten it."""


class JobEndedError(SlurmError):
    """The job has ended, is ending, or waits again: it holds no node, or is about to leave."""


class DrainError(SoperatorError):
    """Nodes did not become free; those that were drained for it are in service again, or the message names them."""


class KubernetesError(SoperatorError):
    """The Kubernetes API is not reached, or refused a request."""


class ConfigRefusedError(SoperatorError):
    """A daemon refused its new configuration; the old one is in force again."""


class NotReadyError(SoperatorError):
    """What a bounded wait waited for did not come."""


class JailError(SoperatorError):
    """A tree of the jail is not filled, or not switched to; what was active before still is."""
