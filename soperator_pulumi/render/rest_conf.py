"""Files of the REST API: the slurm.conf of slurmrestd, and the configuration of the proxy in front of it."""

from soperator_pulumi.render import layout
from soperator_pulumi.render.communication import client_slurm_conf
from soperator_pulumi.render.layout import HEADER, lines
from soperator_pulumi.render.slurmdbd_conf import accounting_lines
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.rest import RestLimitsSpec, RestSpec

_HEADER_KIB = 64
"""Space for the headers of a request, in addition to its body. A token has less than 1 KiB."""

_PROBES = 10
"""Connections that the kubelet makes at the same time."""

_ANSWER_SECONDS = 120
"""Time for an answer of slurmrestd: enough for a query of all jobs of a large cluster."""


def rest_slurm_conf(spec: ClusterSpec) -> str:
    """Return the slurm.conf of slurmrestd, from which it knows the daemons that get its clients' tokens."""
    return client_slurm_conf(spec, {"AuthAltTypes": "auth/jwt", **accounting_lines(spec)})


def proxy_memory_mib(limits: RestLimitsSpec) -> int:
    """Return the memory that the proxy may need: two buffers per connection, in addition to its own."""
    return 64 + 2 * limits.connections * (limits.body_kib + _HEADER_KIB) // 1024


def proxy_conf(rest: RestSpec) -> str:
    """Return haproxy.cfg. The proxy only passes on complete requests, so that slow clients never hold slurmrestd."""
    limits = rest.limits
    certificate = f" ssl crt {layout.REST_TLS_DIR}/tls.crt ssl-min-ver TLSv1.2 alpn http/1.1" if rest.tls else ""
    return lines(
        HEADER,
        "global",
        "    log stdout format raw local0",
        f"    maxconn {limits.connections + _PROBES}",
        f"    tune.bufsize {(limits.body_kib + _HEADER_KIB) * 1024}",
        "",
        "defaults",
        "    mode http",
        "    log global",
        "    option httplog",
        "    option dontlognull",
        f"    timeout http-request {limits.request_seconds}s",
        f"    timeout client {max(limits.request_seconds, 30)}s",
        "    timeout http-keep-alive 30s",
        "    timeout connect 5s",
        "    timeout queue 30s",
        f"    timeout server {_ANSWER_SECONDS}s",
        "",
        "frontend health",
        f"    bind :::{layout.REST_HEALTH_PORT} v4v6",
        f"    maxconn {_PROBES}",
        f"    monitor-uri {layout.REST_HEALTH_PATH}",
        "    monitor fail if { nbsrv(slurmrestd) lt 1 }",
        "",
        "frontend rest",
        # HTTP/2 has bodies without a length, which pass a limit of their size (measured).
        f"    bind :::{layout.REST_PORT} v4v6 proto h1{certificate}",
        f"    maxconn {limits.connections}",
        "    stick-table type ipv6 size 100k expire 10m store conn_cur,http_req_rate(10s)",
        "    tcp-request connection track-sc0 src",
        f"    tcp-request connection reject if {{ sc_conn_cur(0) gt {limits.connections_per_client} }}",
        f"    http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt {limits.requests_per_client} }}",
        # Without its length, a body is known to be too large only when it is here.
        "    http-request deny deny_status 400 if { req.hdr_cnt(transfer-encoding) gt 0 }",
        # Not by the header's own value, of which haproxy compares 32 bits.
        f"    http-request deny deny_status 413 if {{ req.body_size gt {limits.body_kib * 1024} }}",
        f"    http-request wait-for-body time {limits.request_seconds}s",
        "    default_backend slurmrestd",
        "",
        "backend slurmrestd",
        f"    server slurmrestd unix@{layout.REST_SOCKET} check inter 2s maxconn {layout.REST_THREADS}",
    )
