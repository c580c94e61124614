#include "mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mount.h>
#include <unistd.h>

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000 /* Linux 5.2, include/uapi/linux/fcntl.h */
#endif

static int close_keeping_errno(int descriptor)
{
    int saved = errno;

    close(descriptor);
    errno = saved;
    return -1;
}

int mounts_clone(int directory, const char *path, int recursive, uint64_t set, uint64_t cleared)
{
    unsigned int depth = recursive ? AT_RECURSIVE : 0;
    struct mount_attr attributes = {.attr_set = set, .attr_clr = cleared, .propagation = MS_PRIVATE};
    int mount = open_tree(directory, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | depth);

    if (mount < 0)
        return -1;
    if (mount_setattr(mount, "", AT_EMPTY_PATH | depth, &attributes, sizeof(attributes)) < 0)
        return close_keeping_errno(mount);
    return mount;
}

int mounts_new(const char *type, const char *const options[], uint64_t attributes)
{
    int context = fsopen(type, FSOPEN_CLOEXEC);
    int mount;

    if (context < 0)
        return -1;
    for (size_t i = 0; options[i]; i += 2)
        if (fsconfig(context, FSCONFIG_SET_STRING, options[i], options[i + 1], 0) < 0)
            return close_keeping_errno(context);
    if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return close_keeping_errno(context);
    mount = fsmount(context, FSMOUNT_CLOEXEC, (unsigned int)attributes);
    close_keeping_errno(context);
    return mount;
}

int mounts_attach(int mount, int target)
{
    return move_mount(mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}
