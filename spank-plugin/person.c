#include "person.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

int person_enter(const struct person *person, struct failure *failure)
{
    if (setgroups((size_t)person->group_count, person->groups) < 0)
        return fail(failure, "set", "the user's groups");
    setfsgid(person->group);
    setfsuid(person->user); /* the kernel takes away the capabilities that concern files, such as DAC_OVERRIDE */
    /* Neither call tells whether it has worked; -1 changes nothing and returns what there is. */
    if (setfsuid((uid_t)-1) != (int)person->user || setfsgid((gid_t)-1) != (int)person->group)
        return fail_with(failure, FAILURE_NODE, "take the user's rights on files");
    return 0;
}

int person_override(enum person_right right, struct failure *failure)
{
    static const __u32 LENT[] = {
        [PERSON_NOTHING] = 0,
        [PERSON_MODES] = 1U << CAP_DAC_OVERRIDE,
        [PERSON_MODES_AND_OWNERS] = 1U << CAP_DAC_OVERRIDE | 1U << CAP_CHOWN | 1U << CAP_FOWNER,
    };
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, sets) < 0)
        return fail(failure, "read", "capabilities");
    sets[0].effective = (sets[0].effective & ~LENT[PERSON_MODES_AND_OWNERS]) | LENT[right];
    return syscall(SYS_capset, &header, sets) < 0 ? fail(failure, "change", "capabilities") : 0;
}

int person_leave(struct failure *failure)
{
    setfsuid(0);
    setfsgid(0);
    if (setfsuid((uid_t)-1) != 0 || setfsgid((gid_t)-1) != 0)
        return fail_with(failure, FAILURE_NODE, "take root's rights on files");
    return setgroups(0, NULL) < 0 ? fail(failure, "leave", "the user's groups") : 0;
}

int person_become(const struct person *person, struct failure *failure)
{
    if (setgroups((size_t)person->group_count, person->groups) < 0 ||
        setresgid(person->group, person->group, person->group) < 0 ||
        setresuid(person->user, person->user, person->user) < 0)
        return fail(failure, "become", "the user");
    return 0;
}
