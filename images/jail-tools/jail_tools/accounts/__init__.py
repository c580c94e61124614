"""Accounts: the files of passwd(5), group(5) and shadow(5), who is known where, and what comes from tree to tree."""
