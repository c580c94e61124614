/*
 * The seccomp filter of tasks and sessions. A container that may mount has a seccomp profile which lets mount and its
 * kin pass (containerd and CRI-O key them to SYS_ADMIN), for all processes in it, and a user could reach them
 * through a user namespace. The filter takes away from jobs what that profile takes away without SYS_ADMIN.
 */
#ifndef JAIL_SECCOMP_FILTER_H
#define JAIL_SECCOMP_FILTER_H

#include <stdbool.h>

/* Install it, for good, in the calling process. Needs no_new_privs or SYS_ADMIN. Returns 0, or -1 with errno. */
int seccomp_filter_install(bool user_namespaces);

/* Install one more, with which calls that change owners and users do nothing, and succeed. */
int seccomp_filter_pretend(void);

#endif
