"""The lab: machines with a kernel of their own, by user-mode Linux, for what this machine's kernel does not have."""
