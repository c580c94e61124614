"""The exporter's page, at the addresses that a pod has."""

import socket
import threading
from urllib.request import urlopen

import pytest
from slurm_exporter.command import Page, serve


@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]"])
def test_the_page_is_at_every_address_of_the_pod(address: str) -> None:
    if address == "[::1]" and not socket.has_dualstack_ipv6():
        pytest.skip("the kernel has no IPv6")
    page = Page()
    page.text = b"slurm_up 1\n"
    with serve(page, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with urlopen(f"http://{address}:{server.server_address[1]}/metrics", timeout=5) as answer:
                assert answer.read() == page.text
        finally:
            server.shutdown()
