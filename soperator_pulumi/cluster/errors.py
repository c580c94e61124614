"""Errors of the person who writes the program, which Pulumi prints without a traceback."""

from pulumi import RunError

from soperator_pulumi.errors import SoperatorError, SpecError


class InvalidClusterError(SpecError, RunError):
    """A cluster's description has problems: all of them, in one message."""


class ClusterArgumentsError(SoperatorError, RunError):
    """A component was given arguments that do not go together."""
