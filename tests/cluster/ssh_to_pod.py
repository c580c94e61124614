"""An OpenSSH ProxyCommand that goes to the login pod which its first argument names."""

import sys

from soperator_pulumi.cli import ssh_proxy


def main() -> int:
    """Be the project's own proxy, which takes any login pod, for one of them."""
    pod = sys.argv.pop(1)

    def chosen(cluster: object, pods: str, login: str) -> str | None:
        return pod

    ssh_proxy._ready_login_pod = chosen
    return ssh_proxy.main()


if __name__ == "__main__":
    sys.exit(main())
