"""Exceptions of this package, as one tree.

    SoperatorError
    ├── SpecError           a description of a cluster has problems
    ├── TransportError      a command may or may not have run
    ├── SlurmError          Slurm refused a command
    │   ├── NotRunningError          slurmctld or slurmdbd does not answer
    │   ├── UnknownNodeError         no node has that name
    │   ├── NodesNotDeletedError     some nodes of a list are left
    │   ├── UnknownJobError          no job has that number
    │   └── JobEndedError            the job holds no node any more, or is about to leave
    ├── DrainError          nodes did not become free; they are undrained, or named
    ├── KubernetesError     the Kubernetes API did not answer, or refused
    ├── DatabaseError       the database did not answer, or refused a statement
    ├── ConfigRefusedError  a daemon refused its new files; the old ones are in force
    ├── NotReadyError       a bounded wait ended without its condition
    ├── JailError           a tree of the jail is not filled or not active; the former one still is
    ├── RunCancelledError   a wait ended because the run was cancelled; the next run continues
    ├── ConversionError     a file of another project cannot be read or converted
    └── ManifestError       a program has objects that no manifest can describe

Every message names the place, the value given, the values allowed and the next step. No message holds a secret.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from soperator_pulumi.wording import counted, with_final_stop


@dataclass(frozen=True)
class Problem:
    """A fault at a place: of a spec, of a Kubernetes cluster, or of a resource that a policy judges."""

    path: str
    """Path of the field, such as `node_sets[1].replicas`, or name of the object. Empty for the spec as a whole."""

    found: str
    """Value or fact that was found, or the whole text in sentences: value given, values allowed, and the next step."""

    needed: str = ""
    """Values allowed, unless another part of the text has them."""

    cure: str = ""
    """Next step in sentences, unless `found` has it."""

    def sentences(self) -> list[str]:
        """Return the fact, the need, and the cure, without those that are empty.

        A fact alone is a whole text, which may end with a command to copy, and gets no final stop.
        """
        rest = [*([f"Needed: {self.needed}."] if self.needed else []), *([self.cure] if self.cure else [])]
        return [with_final_stop(self.found) if rest else self.found, *rest]

    @property
    def text(self) -> str:
        """Value given, values allowed, and the next step, as full sentences."""
        return " ".join(self.sentences())

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class SoperatorError(Exception):
    """Base of all errors of this package."""


class SpecError(SoperatorError):
    """Problems of a spec: all of them in one message, in the order of their paths."""

    def __init__(self, where: str, problems: Iterable[Problem]) -> None:
        self.where = where
        """Origin of the spec: a configuration key such as `soperator:cluster`, or a component."""
        self.problems = tuple(problems)
        """At least one problem."""
        count = counted(len(self.problems), "problem")
        super().__init__("\n".join([f"{where} has {count}:", *(f"  {problem}" for problem in self.problems)]))


class TransportError(SoperatorError):
    """A command without an answer: it may or may not have run."""


class SlurmError(SoperatorError):
    """Refusal by Slurm, in its own words."""


class NotRunningError(SlurmError):
    """slurmctld or slurmdbd does not answer its own client programs."""


class UnknownNodeError(SlurmError):
    """No node has that name. The other nodes of a list have been changed."""


class NodesNotDeletedError(SlurmError):
    """Nodes of a deleted list that still exist, because they are busy or unknown."""

    def __init__(self, words: str, left: Iterable[str]) -> None:
        super().__init__(words)
        self.left = frozenset(left)
        """Names of the nodes that were not deleted, according to Slurm. The others were."""


class UnknownJobError(SlurmError):
    """No job has that number: it never existed, or slurmctld has forgotten it."""


class JobEndedError(SlurmError):
    """The job has ended, is ending, or is pending again, so it holds no node, or will not for long."""


class DrainError(SoperatorError):
    """Nodes did not become free. All that were drained for it are undrained, or the message names them."""


class AnotherPlannerError(DrainError):
    """Another run drains the same nodes. It undrains them as well: this run must not."""


class KubernetesError(SoperatorError):
    """The Kubernetes API did not answer, or refused a request."""


class DatabaseError(SoperatorError):
    """The cluster's own database did not answer, or refused a statement."""


class ConfigRefusedError(SoperatorError):
    """A daemon refused its new configuration. The old one is in force again."""


class NotReadyError(SoperatorError):
    """A bounded wait ended before its condition held."""


class JailError(SoperatorError):
    """A tree of the jail is not filled, or not active. The former active tree still is."""


class ImagesError(SoperatorError):
    """A shared image is missing. Images that were published earlier stay."""


class RunCancelledError(SoperatorError):
    """A wait ended because the run was cancelled. Nothing is undone: the next run continues."""


class ConversionError(SoperatorError):
    """A file of another project cannot be read, or is not of a kind that can be converted."""


class ManifestError(SoperatorError):
    """A program has objects that no manifest can describe."""
