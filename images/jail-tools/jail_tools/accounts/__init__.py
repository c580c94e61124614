"""Accounts: passwd(5), group(5) and shadow(5), their resolution for daemons, and their transfer between trees."""
