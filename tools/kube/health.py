"""Questions to a server: is it well? Each answers None when it is, else why not."""

import http.client
import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path

from tools.kube.pki import Pair

_TIMEOUT_SECONDS = 2


def http_ok(url: str, *, authority: Path | None = None, client: Pair | None = None) -> str | None:
    """Ask for `url` (with a client certificate where given): well when it answers 200."""
    context = None
    try:
        if authority:
            context = ssl.create_default_context(cafile=str(authority))
            if client:
                context.load_cert_chain(client.certificate, client.key)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            *([urllib.request.HTTPSHandler(context=context)] if context else []),
        )
        with opener.open(url, timeout=_TIMEOUT_SECONDS) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        return f"{url} answers {error.code}: {error.read(200).decode(errors='replace').strip()}"
    except (OSError, http.client.HTTPException) as error:
        return f"{url}: {error}"
    return None


def socket_ok(path: Path) -> str | None:
    """Connect to a UNIX socket: well when someone listens."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_TIMEOUT_SECONDS)
        try:
            connection.connect(str(path))
        except OSError as error:
            return f"{path}: {error}"
    return None
