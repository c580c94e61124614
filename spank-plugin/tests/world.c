#include "world.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../enter_view.h"
#include "../tree.h"
#include "../view.h"
#include "harness.h"

void world_write(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

    CHECK(file >= 0);
    CHECK(write(file, text, strlen(text)) == (ssize_t)strlen(text));
    CHECK(close(file) == 0);
}

int world_holds(const char *path, const char *text)
{
    char found[64] = "";
    int file = open(path, O_RDONLY | O_CLOEXEC);

    if (file < 0)
        return 0;
    if (read(file, found, sizeof(found) - 1) < 0)
        found[0] = '\0';
    close(file);
    return strncmp(found, text, strlen(text)) == 0;
}

static void make(const char *path, mode_t mode)
{
    CHECK(mkdir(path, mode) == 0);
    CHECK(chmod(path, mode) == 0);
}

static void make_tree(const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), CLAIM "/trees/%s", name);
    make(path, 0755);
    snprintf(path, sizeof(path), CLAIM "/trees/%s/etc", name);
    make(path, 0755);
    snprintf(path, sizeof(path), CLAIM "/trees/%s/etc/name", name);
    world_write(path, name);
}

void world_make(void)
{
    static const char *const IN_MEMORY[] = {"/run", "/opt", "/var", "/home"};

    CHECK(unshare(CLONE_NEWNS) == 0);
    CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    for (size_t i = 0; i < sizeof(IN_MEMORY) / sizeof(IN_MEMORY[0]); i++)
        CHECK(mount("world", IN_MEMORY[i], "tmpfs", MS_NOEXEC, "mode=0755") == 0);
    make("/run/munge", 0755);
    make("/run/munge/jobs", 0755);
    make("/run/slurm", 0755);
    make("/run/slurm/pmix", 0711);
    make("/opt/slurm", 0755);
    make("/var/lib", 0755);
    make("/var/lib/extrausers", 0755);
    make("/var/spool", 0755);
    make("/var/spool/slurmd", 0755);
    make(CLAIM, 0755);
    make(CLAIM "/trees", 0755);
    make(CLAIM "/jobs", 0700);
    make_tree(TREE);
    make_tree(OTHER_TREE);
    CHECK(symlink("trees/" TREE, CLAIM "/active") == 0);
}

void world_configure(struct jail_config *config, int count, const char *const arguments[])
{
    char *all[16] = {(char *)"jail=" CLAIM};
    struct failure failure = {FAILURE_NONE, ""};

    CHECK(count < 16);
    for (int i = 0; i < count; i++)
        all[i + 1] = (char *)arguments[i];
    if (config_parse(config, count + 1, all, &failure) < 0)
        CHECK_SAYS(failure.text, "(no failure)");
}

void world_become_user(void)
{
    CHECK(setgroups(0, NULL) == 0);
    CHECK(setregid(USER_ID, USER_ID) == 0);
    CHECK(setreuid(USER_ID, USER_ID) == 0);
}

void world_make_program(struct jail_config *config, const char *path, const char *script)
{
    static const char *const ARGUMENTS[] = {"bind=/home", "bind=/tmp"};

    world_make();
    CHECK(mkdir("/run/layers", 0755) == 0);
    CHECK(mkdir("/run/layers/upper", 0755) == 0 && mkdir("/run/layers/work", 0755) == 0);
    CHECK(mount("layers", "/usr/lib", "overlay", 0,
                "lowerdir=/usr/lib,upperdir=/run/layers/upper,workdir=/run/layers/work") == 0);
    CHECK(mkdir("/usr/lib/soperator", 0755) == 0 && mkdir("/usr/lib/soperator/containers", 0755) == 0);
    world_write(path, script);
    CHECK(chmod(path, 0755) == 0);
    CHECK(mkdir("/home/user", 0700) == 0 && chown("/home/user", USER_ID, USER_ID) == 0);
    world_configure(config, 2, ARGUMENTS);
}

int world_open_jail(void *config, struct failure *failure)
{
    struct view view = {.config = config, .job = true, .job_id = 12};
    struct tree tree;
    int claim;

    CHECK(enter_namespace(failure) == 0);
    CHECK((claim = claim_open(view.config->jail, failure)) >= 0);
    CHECK(tree_of_job(claim, 12, &tree, failure) == 0);
    view.tree = view.place = tree.fd;
    return view_build(&view, failure);
}
