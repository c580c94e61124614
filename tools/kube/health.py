"""Health checks of servers: None for a healthy server, otherwise the problem."""

import http.client
import json
import socket
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.kube.pki import KeyPair

_TIMEOUT_SECONDS = 3
_SHOWN_BYTES = 200


@dataclass(frozen=True)
class Asker:
    """HTTP client, with a client certificate if given. It never uses a proxy."""

    authority: Path | None = None
    client: KeyPair | None = None

    def get(self, url: str) -> bytes:
        """Return the answer of `url`. Anything but success raises an OSError or an HTTPException."""
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if self.authority:
            context = ssl.create_default_context(cafile=str(self.authority))
            if self.client:
                context.load_cert_chain(self.client.certificate, self.client.key)
            handlers.append(urllib.request.HTTPSHandler(context=context))
        with urllib.request.build_opener(*handlers).open(url, timeout=_TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read()
        return content

    def problem(self, url: str) -> str | None:
        """Return None if `url` answers with success, otherwise the problem."""
        try:
            self.get(url)
        except urllib.error.HTTPError as error:
            with error:
                text = error.read(_SHOWN_BYTES).decode(errors="replace").strip()
            return f"{url} answers {error.code}: {text}"
        except (OSError, http.client.HTTPException) as error:
            return f"{url}: {error}"
        return None

    def node_problem(self, url: str) -> str | None:
        """Return None if the Node object at `url` is ready, otherwise the problem."""
        try:
            node: dict[str, Any] = json.loads(self.get(url))
        except urllib.error.HTTPError as error:
            with error:
                return f"{url}: {error}"
        except (OSError, http.client.HTTPException) as error:
            return f"{url}: {error}"
        conditions = node.get("status", {}).get("conditions", [])
        ready = next((condition for condition in conditions if condition["type"] == "Ready"), None)
        if ready and ready["status"] == "True":
            return None
        return f"the node is not ready: {ready['message'] if ready else 'the kubelet has not reported yet'}"


def socket_problem(path: Path) -> str | None:
    """Return None if a program listens on a UNIX socket, otherwise the problem."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_TIMEOUT_SECONDS)
        try:
            connection.connect(str(path))
        except OSError as error:
            return f"{path}: {error}"
    return None
