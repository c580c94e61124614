#include "confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seccomp_filter.h"

#define MAX_CAPABILITIES 64

static int clear_inheritable(struct failure *failure)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, sets) < 0)
        return fail(failure, "read", "capabilities");
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        sets[i].inheritable = 0;
    return syscall(SYS_capset, &header, sets) < 0 ? fail(failure, "drop", "inheritable capabilities") : 0;
}

static int clear_bounding(uint64_t dropped, struct failure *failure)
{
    for (int number = 0; number < MAX_CAPABILITIES; number++) {
        int held = prctl(PR_CAPBSET_READ, number, 0, 0, 0);

        if (held < 0)
            return 0; /* the kernel knows no more */
        if (held && (dropped & CAPABILITY(number)) && prctl(PR_CAPBSET_DROP, number, 0, 0, 0) < 0)
            return fail(failure, "drop from the bounding set", "capabilities");
    }
    return 0;
}

int confine(uint64_t dropped, bool user_namespaces, struct failure *failure)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return fail(failure, "set", "no_new_privs");
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return fail(failure, "drop", "ambient capabilities");
    if (clear_inheritable(failure) < 0 || clear_bounding(dropped, failure) < 0)
        return -1;
    return seccomp_filter_install(user_namespaces) < 0 ? fail(failure, "install", "the seccomp filter") : 0;
}
