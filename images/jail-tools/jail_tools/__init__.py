"""Tools that fill and keep the jail, the shared root filesystem of jobs and logins. They need only Python."""
