"""Statements of the database's administrator, who connects to the socket in MariaDB's pod and has no password.

Statements are sent on standard input, as others can see the arguments and environments of processes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from soperator_pulumi.errors import DatabaseError
from soperator_pulumi.kube.pods import Pod, find_pods
from soperator_pulumi.kube.verbs import Kube

DATABASE_COMPONENT = "database"
DATABASE_CONTAINER = "mariadb"

_CLIENT = "mariadb --no-defaults --user=root --batch --raw --skip-column-names"


@dataclass(frozen=True)
class DatabaseAdministration:
    """MariaDB in the pod of the cluster's own database."""

    kube: Kube
    namespace: str
    selector: Mapping[str, str]
    """Labels of all pods of the cluster."""

    def run(self, statements: str, *, timeout_seconds: int = 60) -> str:
        """Run SQL, and return its rows: one line per row, with values separated by tabs.

        Raises:
            DatabaseError: MariaDB does not run, or refuses a statement; with its own message.
            TransportError: it is unknown if the statements were carried out.
        """
        pod = self.pod()
        if pod is None or not pod.runs(DATABASE_CONTAINER):
            why = "is missing" if pod is None else pod.why_not_ready(self.kube)
            raise DatabaseError(f"MariaDB does not run: pod {self.namespace}/database-0 {why}. Run again when it runs.")
        text = statements.encode()
        place = self.kube.transport(self.namespace, pod.name, DATABASE_CONTAINER)
        # The transport never ends the input, so the client would wait for more.
        command = ["/bin/sh", "-c", f"head -c {len(text)} | {_CLIENT}"]
        answer = place.run(command, stdin=text, timeout_seconds=timeout_seconds)
        if answer.returncode != 0:
            # The client repeats the statement before its error.
            errors = [line for line in answer.stderr.splitlines() if line.startswith("ERROR")]
            reason = " ".join(errors) or "no reason given"
            raise DatabaseError(f"MariaDB in {self.namespace}/{pod.name} refuses: {reason}")
        return answer.stdout

    def pod(self) -> Pod | None:
        """Return the pod of MariaDB; None if there is none."""
        selector = {**self.selector, "app.kubernetes.io/component": DATABASE_COMPONENT}
        return next((pod for pod in find_pods(self.kube, self.namespace, selector) if not pod.going), None)
