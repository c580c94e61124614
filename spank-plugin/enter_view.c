#include "enter_view.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "descriptors.h"
#include "detach_mounts.h"

int enter_namespace(struct failure *failure)
{
    if (unshare(CLONE_NEWNS) < 0)
        return fail(failure, "make a namespace of", "mounts");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return fail(failure, "make private", "/");
    return 0;
}

/* Move the mount at `root` over the root directory, and go there. */
static int move(int root, struct failure *failure)
{
    if (fchdir(root) < 0)
        return fail(failure, "go to", "the view's root");
    /* The seccomp profile of container runtimes refuses pivot_root, with SYS_ADMIN too, and lets these pass. */
    return mount(".", "/", NULL, MS_MOVE, NULL) < 0 ? fail(failure, "move the view to", "/") : 0;
}

int enter_root(int root, struct failure *failure)
{
    struct detachable others;
    int result = detach_mounts_note(&others, failure);

    if (result == 0 && (result = move(root, failure)) == 0)
        result = detach_mounts_all(&others, failure);
    detach_mounts_forget(&others);
    if (result < 0)
        return -1;
    if (chroot(".") < 0)
        return fail(failure, "chroot to", "the view");
    if (chdir("/") < 0)
        return fail(failure, "chdir to", "/");
    return descriptors_replace_directories(failure);
}
