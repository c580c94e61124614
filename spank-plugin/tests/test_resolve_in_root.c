#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../resolve_in_root.h"
#include "harness.h"
#include "world.h"

static int tree(void)
{
    int opened = open(TREE_PATH, O_PATH | O_DIRECTORY | O_CLOEXEC);

    CHECK(opened >= 0);
    return opened;
}

static bool is(const char *path, int descriptor, mode_t type)
{
    struct stat named, opened;

    CHECK(descriptor >= 0);
    return lstat(path, &named) == 0 && fstat(descriptor, &opened) == 0 && named.st_ino == opened.st_ino &&
           named.st_dev == opened.st_dev && (named.st_mode & S_IFMT) == type;
}

TEST(what_is_missing_is_made)
{
    struct stat status;

    world_make();
    CHECK(is(TREE_PATH "/a/b/c", make_in_root(tree(), "/a/b/c", true), S_IFDIR));
    CHECK(is(TREE_PATH "/a/d/file", make_in_root(tree(), "/a/d/file", false), S_IFREG));
    CHECK(stat(TREE_PATH "/a", &status) == 0 && status.st_uid == 0 && (status.st_mode & 07777) == 0755);
}

TEST(what_is_there_is_found)
{
    world_make();
    CHECK(is(TREE_PATH "/etc/name", make_in_root(tree(), "/etc/name", false), S_IFREG));
    CHECK(open_in_root(tree(), "/etc/nothing") == -1 && errno == ENOENT);
}

TEST(an_absolute_link_stays_inside)
{
    world_make();
    CHECK(symlink("/etc", TREE_PATH "/link") == 0);
    CHECK(is(TREE_PATH "/etc/hosts", make_in_root(tree(), "/link/hosts", false), S_IFREG));
}

TEST(dots_stay_inside)
{
    world_make();
    CHECK(symlink("../../../../../../etc", TREE_PATH "/link") == 0);
    CHECK(is(TREE_PATH "/etc/name", open_in_root(tree(), "/link/name"), S_IFREG));
    CHECK(is(TREE_PATH "/etc/name", open_in_root(tree(), "/../../etc/name"), S_IFREG));
}

TEST(links_to_nothing_are_followed_inside)
{
    world_make();
    CHECK(symlink("../run/resolve/stub.conf", TREE_PATH "/etc/resolv.conf") == 0);
    CHECK(is(TREE_PATH "/run/resolve/stub.conf", make_in_root(tree(), "/etc/resolv.conf", false), S_IFREG));
    CHECK(symlink("/outer", TREE_PATH "/tmp") == 0);
    CHECK(symlink("/deeper/still", TREE_PATH "/outer") == 0);
    CHECK(is(TREE_PATH "/deeper/still/x", make_in_root(tree(), "/tmp/x", true), S_IFDIR));
    CHECK(access("/outer", F_OK) == -1 && access("/deeper", F_OK) == -1);
}

TEST(links_in_circles_end)
{
    world_make();
    CHECK(symlink("b", TREE_PATH "/a") == 0 && symlink("a", TREE_PATH "/b") == 0);
    CHECK(make_in_root(tree(), "/a", true) == -1 && errno == ELOOP);
    CHECK(make_in_root(tree(), "/a/c", true) == -1 && errno == ELOOP);
}

TEST(magic_links_are_refused)
{
    world_make();
    CHECK(symlink("/proc/self/root", TREE_PATH "/a") == 0);
    CHECK(open_in_root(open("/", O_PATH | O_CLOEXEC), "/proc/self/root") == -1 && errno == ELOOP);
}

TEST(a_file_in_the_way_is_an_error)
{
    world_make();
    CHECK(make_in_root(tree(), "/etc/name/x", true) == -1 && errno == ENOTDIR);
}

TEST(only_absolute_paths_are_taken)
{
    char path[8192] = "/";

    world_make();
    memset(path + 1, 'a', sizeof(path) - 2);
    CHECK(make_in_root(tree(), "etc", true) == -1 && errno == EINVAL);
    CHECK(make_in_root(tree(), "", true) == -1 && errno == EINVAL);
    CHECK(make_in_root(tree(), path, true) == -1 && errno == ENAMETOOLONG);
}

TEST(a_tree_that_is_read_only_is_an_error)
{
    world_make();
    CHECK(make_in_root(open("/proc", O_PATH | O_CLOEXEC), "/nothing", true) == -1 && errno == ENOENT);
}

/* Two tasks of a node that make the first job's mount points at once. */
TEST(many_at_once_find_the_same_place)
{
    enum { TASKS = 16, ROUNDS = 20 };

    world_make();
    for (int round = 0; round < ROUNDS; round++) {
        pid_t children[TASKS];
        char path[64], whole[128];

        snprintf(path, sizeof(path), "/r%d/a/b", round);
        snprintf(whole, sizeof(whole), TREE_PATH "%s", path);
        for (int i = 0; i < TASKS; i++) {
            CHECK((children[i] = fork()) >= 0);
            if (children[i] == 0)
                _exit(is(whole, make_in_root(tree(), path, true), S_IFDIR) ? 0 : 1);
        }
        for (int i = 0; i < TASKS; i++)
            CHECK(test_await(children[i]) == 0);
    }
}

TEST(mounts_of_other_tasks_do_not_disturb_the_way)
{
    pid_t other;
    int root;

    world_make();
    root = tree();
    CHECK(symlink("../etc/../etc/../etc", TREE_PATH "/link") == 0);
    CHECK((other = fork()) >= 0);
    if (other == 0) {
        alarm(60);
        while (rename(TREE_PATH "/etc/name", TREE_PATH "/etc/other") == 0 &&
               rename(TREE_PATH "/etc/other", TREE_PATH "/etc/name") == 0)
            ;
        _exit(1);
    }
    for (int i = 0; i < 2000; i++) {
        int found = open_in_root(root, "/link");

        CHECK(found >= 0);
        CHECK(close(found) == 0);
    }
    CHECK(kill(other, SIGKILL) == 0 && test_await(other) == 128 + SIGKILL);
}
