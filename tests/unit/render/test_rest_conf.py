"""haproxy.cfg, with and without a certificate, and the slurm.conf of slurmrestd."""

import pytest

from soperator_pulumi.render.change_impact import parse_conf
from soperator_pulumi.render.rest_conf import proxy_conf, proxy_memory_mib, rest_slurm_conf
from soperator_pulumi.spec.rest import RestLimitsSpec, RestSpec
from tests.strategies import a_spec

LIMITS = {
    "body_kib": 16,
    "connections": 7,
    "connections_per_client": 3,
    "requests_per_client": 42,
    "request_seconds": 5,
}


def section(text: str, head: str) -> list[str]:
    """Return the lines of a section of haproxy.cfg."""
    (found,) = (block for block in text.split("\n\n") if block.startswith(head))
    return [line.strip() for line in found.splitlines()[1:]]


def test_the_proxy_takes_http_1_alone_without_a_certificate() -> None:
    binds = [line for line in section(proxy_conf(RestSpec()), "frontend rest") if line.startswith("bind")]

    assert binds == ["bind :::6820 v4v6 proto h1"]


def test_the_proxy_takes_http_1_over_tls_alone_with_a_certificate() -> None:
    rest = RestSpec.model_validate({"tls": {"secret": "rest-certificate"}})
    binds = [line for line in section(proxy_conf(rest), "frontend rest") if line.startswith("bind")]

    assert binds == ["bind :::6820 v4v6 proto h1 ssl crt /etc/rest-tls/tls.crt ssl-min-ver TLSv1.2 alpn http/1.1"]


def test_a_certificate_changes_nothing_else_of_the_proxy() -> None:
    with_tls = proxy_conf(RestSpec.model_validate({"tls": {"secret": "rest-certificate"}}))
    differing = {*with_tls.splitlines()} ^ {*proxy_conf(RestSpec()).splitlines()}

    assert all(line.startswith("    bind :::6820 ") for line in differing)
    assert len(differing) == 2


def test_the_limits_are_those_of_the_spec() -> None:
    text = proxy_conf(RestSpec.model_validate({"limits": LIMITS}))

    frontend = section(text, "frontend rest")
    assert {
        "maxconn 7",
        "tcp-request connection reject if { sc_conn_cur(0) gt 3 }",
        "http-request deny deny_status 429 if { sc_http_req_rate(0) gt 42 }",
        f"http-request deny deny_status 413 if {{ req.body_size gt {16 * 1024} }}",
        "http-request wait-for-body time 5s",
    } <= {*frontend}
    assert "timeout http-request 5s" in section(text, "defaults")


def test_a_request_is_judged_before_the_proxy_waits_for_its_body() -> None:
    frontend = section(proxy_conf(RestSpec()), "frontend rest")
    denials = [frontend.index(line) for line in frontend if line.startswith("http-request deny")]

    assert len(denials) == 3
    assert max(denials) < frontend.index("http-request wait-for-body time 10s")


def test_the_kubelet_s_probes_have_connections_that_no_client_takes() -> None:
    text = proxy_conf(RestSpec.model_validate({"limits": LIMITS}))
    (probes,) = (int(line.split()[1]) for line in section(text, "frontend health") if line.startswith("maxconn"))

    assert f"maxconn {7 + probes}" in section(text, "# Rendered")


def test_a_body_of_the_largest_size_fits_into_a_buffer_of_the_proxy() -> None:
    limits = RestLimitsSpec(body_kib=16_384)
    settings = section(proxy_conf(RestSpec(limits=limits)), "# Rendered")
    (buffer,) = (int(line.split()[1]) for line in settings if line.startswith("tune.bufsize"))

    assert buffer > 16_384 * 1024
    assert proxy_memory_mib(limits) * 1024**2 > 2 * limits.connections * buffer


@pytest.mark.parametrize(
    ("accounting", "expected"),
    [
        ("none", {"AccountingStorageType": "accounting_storage/none"}),
        (
            {},
            {
                "AccountingStorageType": "accounting_storage/slurmdbd",
                "AccountingStorageHost": "accounting-0",
                "AccountingStoragePort": "6819",
            },
        ),
    ],
)
def test_slurmrestd_finds_slurmdbd_where_the_cluster_has_accounting(
    accounting: object, expected: dict[str, str]
) -> None:
    found = parse_conf(rest_slurm_conf(a_spec(accounting=accounting))).parameters

    assert {name: value for name, value in found.items() if name.startswith("AccountingStorage")} == expected
    assert found["AuthAltTypes"] == "auth/jwt"
    assert "AuthAltParameters" not in found, "slurmrestd has no key"
