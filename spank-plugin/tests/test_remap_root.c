#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../confine.h"
#include "../remap_root.h"
#include "harness.h"
#include "world.h"

static const struct person PERSON = {.user = USER_ID, .group = USER_ID, .name = "user", .home = "/home/user"};
static struct failure failure;

static void prepare(void)
{
    world_make();
    CHECK(mkdir("/home/user", 0700) == 0 && chown("/home/user", USER_ID, USER_ID) == 0);
    CHECK(confine(~UINT64_C(0), true, &failure) == 0);
    CHECK(remap_root_prepare(&PERSON, &failure) == 0);
    world_become_user();
}

static void become_root(void)
{
    prepare();
    if (remap_root_enter(&failure) < 0)
        CHECK_SAYS(failure.text, "(no failure)");
}

TEST(the_user_is_root_with_files_of_the_user)
{
    struct stat status;

    become_root();
    CHECK(getuid() == 0 && geteuid() == 0 && getgid() == 0);
    CHECK(world_holds("/proc/self/setgroups", "deny"));
    world_write("/home/user/file", "x");
    CHECK(stat("/home/user/file", &status) == 0 && status.st_uid == 0);
    CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD); /* the program finds no child that it has not made */
}

TEST(the_user_as_root_gets_no_right_on_files_of_others)
{
    become_root();
    CHECK(open("/etc/shadow", O_RDONLY | O_CLOEXEC) == -1 && errno == EACCES);
    CHECK(open("/run/claim/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) == -1 && errno == EACCES);
    CHECK(mount("x", "/mnt", "tmpfs", 0, NULL) == -1 && errno == EPERM);
    CHECK(kill(1, 0) == -1 && errno == EPERM);
}

TEST(changes_of_owners_and_users_succeed_and_change_nothing)
{
    struct stat status;

    become_root();
    world_write("/home/user/file", "x");
    CHECK(chown("/home/user/file", 42, 42) == 0 && lchown("/etc/name", 42, 42) == 0);
    CHECK(stat("/home/user/file", &status) == 0 && status.st_uid == 0 && status.st_gid == 0);
    CHECK(setgroups(0, NULL) == 0 && setresgid(42, 42, 42) == 0 && setresuid(42, 42, 42) == 0);
    CHECK(getuid() == 0 && getgid() == 0);
}

static pid_t only_child(void)
{
    char path[64];
    int child = 0;
    FILE *children;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    CHECK((children = fopen(path, "re")) != NULL && fscanf(children, "%d", &child) == 1);
    fclose(children);
    return child;
}

TEST(a_task_whose_mapping_process_is_killed_fails_in_words)
{
    world_make();
    CHECK(confine(~UINT64_C(0), true, &failure) == 0 && remap_root_prepare(&PERSON, &failure) == 0);
    CHECK(kill(only_child(), SIGKILL) == 0);
    world_become_user();
    CHECK(remap_root_enter(&failure) == -1 && failure.scope == FAILURE_JOB);
    CHECK_SAYS(failure.text, "--container-remap-root: map to root the user: ");
}

TEST(a_job_that_may_make_no_user_namespace_is_no_root)
{
    world_make();
    CHECK(confine(~UINT64_C(0), false, &failure) == 0 && remap_root_prepare(&PERSON, &failure) == 0);
    world_become_user();
    CHECK(remap_root_enter(&failure) == -1 && failure.scope == FAILURE_JOB);
    CHECK_SAYS(failure.text, "make a user namespace");
}
