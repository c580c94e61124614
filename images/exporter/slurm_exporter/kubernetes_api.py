"""Calls to the pod's own Kubernetes, with the token of its service account."""

import json
import ssl
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any

SECONDS = 10
"""Time of one call."""

ERRORS = (OSError, HTTPException, ValueError)
"""Errors of a call that got no answer."""


@dataclass(frozen=True)
class ApiAnswer:
    """Status and body of an answer."""

    status: int
    body: dict[str, Any]


class KubernetesApi:
    """Client of the API server, with the rights of the pod's ServiceAccount.

    Args:
        folder: Folder of the service account: `token` and `ca.crt`, which the kubelet replaces, and `namespace`.
        environment: Variables of the container, with the address of Kubernetes.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.namespace = (folder / "namespace").read_text().strip()
        self._folder = folder
        self._address = environment["KUBERNETES_SERVICE_HOST"], int(environment["KUBERNETES_SERVICE_PORT"])

    def call(self, verb: str, path: str, body: object = None, form: str = "application/json") -> ApiAnswer:
        """Make one call. `form` is the media type of the body.

        Raises:
            OSError: Kubernetes cannot be reached, or has another authority.
            HTTPException: The answer is not HTTP.
            ValueError: The answer is not JSON.
        """
        token = (self._folder / "token").read_text().strip()
        trusted = ssl.create_default_context(cafile=self._folder / "ca.crt")
        headers = {"Authorization": f"Bearer {token}", "Content-Type": form}
        with closing(HTTPSConnection(*self._address, timeout=SECONDS, context=trusted)) as connection:
            connection.request(verb, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
        found = json.loads(text) if text else {}
        return ApiAnswer(answer.status, found if isinstance(found, dict) else {})
