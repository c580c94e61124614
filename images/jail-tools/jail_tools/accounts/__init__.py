"""Accounts: the files of passwd(5), group(5) and shadow(5), their resolution for daemons, their way between trees."""
