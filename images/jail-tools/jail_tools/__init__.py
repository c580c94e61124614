"""What fills and keeps the jail, the shared root filesystem of jobs and logins. It needs nothing but Python."""
