"""A live Kubernetes cluster, accessed with the official client. Every call is bounded, every error is a message.

The client finds credentials and proxies and keeps the connections. Its generated classes are not used: only a few
fields of objects are read, and lists of objects are long.
"""

import json
from collections.abc import Mapping
from urllib.parse import urlencode

import urllib3
from kubernetes import client

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.exec_transport import ExecTransport, bearer_token
from soperator_pulumi.kube.kubeconfig import client_settings, not_reached
from soperator_pulumi.kube.verbs import FIELD_MANAGER, LOG_LINES, Json
from soperator_pulumi.slurm.shared_reads import SharedReads
from soperator_pulumi.slurm.transport import Transport

_TIMEOUT = urllib3.Timeout(connect=5, read=30)
_RETRIES = urllib3.Retry(total=2, backoff_factor=0.3, status_forcelist=(429, 503), raise_on_status=False)
_OK = 200
_ERRORS = 400
_NOT_FOUND = 404

_PAGE = 500
"""Number of objects that are read at a time, as by kubectl: 4,096 pods of workers have 86 MB."""


class Cluster:
    """A live cluster, reached through an `Access`."""

    def __init__(self, access: Access) -> None:
        self._configuration = client_settings(access)
        self._http = client.ApiClient(self._configuration).rest_client.pool_manager
        self._transports: dict[tuple[str, str, str, bool], SharedReads] = {}

    def __str__(self) -> str:
        """Return the address of the API server, for messages."""
        return str(self._configuration.host)

    def get(self, path: str) -> Json | None:
        """Return an object; None if it does not exist."""
        return self._request("GET", path)

    def find(
        self, path: str, labels: Mapping[str, str] | None = None, fields: Mapping[str, str] | None = None
    ) -> list[Json]:
        """Return the objects of a collection that have these labels and fields; pods without their `managedFields`.

        These are two fifths of a pod, and nothing asks who has set its fields.
        """
        chosen = (("labelSelector", labels), ("fieldSelector", fields))
        query = {name: ",".join(f"{key}={value}" for key, value in pairs.items()) for name, pairs in chosen if pairs}
        query["limit"] = str(_PAGE)
        found: list[Json] = []
        while page := self._request("GET", f"{path}?{urlencode(query)}"):
            for item in page["items"]:
                if path.endswith("/pods"):
                    item["metadata"].pop("managedFields", None)
                found.append(item)
            following = page.get("metadata", {}).get("continue")
            if not following:
                return found
            query["continue"] = following
        if found:
            raise KubernetesError(f"{self._configuration.host}: {path} vanished while it was read. Run again.")
        return []

    def create(self, path: str, body: Json, *, dry_run: bool = False, manager: str = FIELD_MANAGER) -> Json:
        """Create an object; with `dry_run` the server only checks that it would admit the object."""
        query = urlencode({"fieldManager": manager, **({"dryRun": "All"} if dry_run else {})})
        created = self._request("POST", f"{path}?{query}", body)
        if created is None:
            raise KubernetesError(f"{self._configuration.host}: {path} does not exist.")
        return created

    def apply(self, path: str, body: Json, *, manager: str = FIELD_MANAGER) -> Json:
        """Apply `body` on the server as `manager`, overriding fields that others own."""
        query = urlencode({"fieldManager": manager, "force": "true"})
        applied = self._request("PATCH", f"{path}?{query}", body, "application/apply-patch+yaml")
        if applied is None:
            raise KubernetesError(
                f"{self._configuration.host}: {path} cannot be created: its namespace does not exist."
            )
        return applied

    def merge(self, path: str, body: Json) -> Json | None:
        """Change the given fields of an object; None if it does not exist."""
        query = urlencode({"fieldManager": FIELD_MANAGER})
        return self._request("PATCH", f"{path}?{query}", body, "application/merge-patch+json")

    def delete(self, path: str, *, dependents_first: bool = False) -> None:
        """Delete an object, if it exists; with `dependents_first`, after all objects that it owns."""
        self._request("DELETE", f"{path}?propagationPolicy=Foreground" if dependents_first else path)

    def log(
        self,
        path: str,
        container: str,
        *,
        previous: bool = False,
        since_seconds: int | None = None,
        lines: int = LOG_LINES,
    ) -> str:
        """Return the last lines of a container's log, at most `since_seconds` old; empty without a log."""
        query: dict[str, str | int] = {
            "container": container,
            "tailLines": lines,
            "previous": str(previous).lower(),
        }
        if since_seconds is not None:
            query["sinceSeconds"] = max(1, since_seconds)
        response = self._send("GET", f"{path}/log?{urlencode(query)}")
        text = response.data.decode(errors="replace") if response.status == _OK else ""
        return "" if text.startswith("unable to retrieve container logs") else text  # the container is gone

    def transport(self, namespace: str, pod: str, container: str, *, coreutils: bool = True) -> Transport:
        """Return a transport to a container, which shares reads with other transports."""
        where = (namespace, pod, container, coreutils)
        transport = ExecTransport(self._configuration, namespace, pod, container, coreutils=coreutils)
        return self._transports.setdefault(where, SharedReads(transport))

    def _request(
        self, method: str, path: str, body: Json | None = None, content_type: str = "application/json"
    ) -> Json | None:
        response = self._send(method, path, body, content_type)
        if response.status == _NOT_FOUND:
            return None
        content = _json(response.data)
        if response.status >= _ERRORS:
            message = content.get("message") or response.data.decode(errors="replace")[:500] or response.reason
            raise KubernetesError(f"{method} {path.partition('?')[0]} at {self._configuration.host}: {message}")
        if not response.data.lstrip().startswith(b"{"):
            raise KubernetesError(
                f"{self._configuration.host} answers {method} {path.partition('?')[0]} with something other than "
                "Kubernetes' JSON (perhaps the login page of a proxy). Log in again, or check the kubeconfig, and run "
                "again."
            )
        return content

    def _send(
        self, method: str, path: str, body: Json | None = None, content_type: str = "application/json"
    ) -> urllib3.BaseHTTPResponse:
        bearer = bearer_token(self._configuration)
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "Content-Type": content_type,
            **({"Authorization": bearer} if bearer else {}),
        }
        try:
            return self._http.request(
                method,
                f"{self._configuration.host}{path}",
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                timeout=_TIMEOUT,
                retries=_RETRIES,
            )
        except urllib3.exceptions.HTTPError as error:
            raise KubernetesError(not_reached(self._configuration.host, error)) from error


def _json(data: bytes) -> Json:
    try:
        content = json.loads(data)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
