"""The lab: machines with their own kernel, by user-mode Linux, for features that this machine's kernel lacks."""
