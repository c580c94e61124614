"""Pulumi starts this as a plugin."""

from soperator_pulumi.plugin.plugin_server import main

if __name__ == "__main__":
    main()
