#include <errno.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../detach_mounts.h"
#include "harness.h"
#include "world.h"

static struct detachable found;
static struct failure failure;

TEST(mounts_on_the_root_are_detached_with_what_lies_on_them_and_below)
{
    world_make();
    CHECK(mkdir("/home/inner", 0755) == 0 && mount("inner", "/home/inner", "tmpfs", 0, NULL) == 0);
    CHECK(mount("above", "/opt", "tmpfs", 0, NULL) == 0 && mkdir("/opt/above", 0755) == 0);
    CHECK(detach_mounts_note(&found, &failure) == 0);
    CHECK(detach_mounts_all(&found, &failure) == 0);
    detach_mounts_forget(&found);
    CHECK(access("/home/inner", F_OK) == -1 && errno == ENOENT);
    CHECK(access("/opt/above", F_OK) == -1 && access("/opt/slurm", F_OK) == -1);
    CHECK(access("/run/claim", F_OK) == -1 && access("/proc/self", F_OK) == -1);
    _exit(0); /* without /proc no leak check can run */
}
