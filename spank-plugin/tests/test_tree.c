#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../tree.h"
#include "harness.h"
#include "world.h"

static struct failure failure;

static int claim(void)
{
    int opened = claim_open(CLAIM, &failure);

    CHECK(opened >= 0);
    return opened;
}

static void relink(const char *target, const char *path)
{
    unlink(path);
    CHECK(symlink(target, path) == 0);
}

TEST(a_job_stays_in_the_tree_that_it_began_in)
{
    struct tree tree;

    world_make();
    CHECK(tree_of_job(claim(), 7, &tree, &failure) == 0);
    CHECK(strcmp(tree.name, TREE) == 0);
    relink("trees/" OTHER_TREE, CLAIM "/active");
    CHECK(tree_of_job(claim(), 7, &tree, &failure) == 0);
    CHECK(strcmp(tree.name, TREE) == 0);
    CHECK(tree_of_job(claim(), 8, &tree, &failure) == 0);
    CHECK(strcmp(tree.name, OTHER_TREE) == 0);
}

TEST(a_record_says_what_the_link_active_says)
{
    struct tree tree;
    char target[64] = "";

    world_make();
    CHECK(tree_of_job(claim(), 4294967295u, &tree, &failure) == 0);
    CHECK(readlink(CLAIM "/jobs/4294967295", target, sizeof(target) - 1) > 0);
    CHECK(strcmp(target, "trees/" TREE) == 0);
}

TEST(a_record_whose_tree_is_gone_is_replaced)
{
    struct tree tree;

    world_make();
    relink("trees/cccccccccccc", CLAIM "/jobs/7");
    CHECK(tree_of_job(claim(), 7, &tree, &failure) == 0);
    CHECK(strcmp(tree.name, TREE) == 0);
}

TEST(a_record_that_is_no_tree_refuses_this_job_alone)
{
    static const char *const TARGETS[] = {"/etc",          "trees/../../etc", "trees/aaaaaaaaaaa", "trees/aaaaaaaaaaaaa",
                                          "trees/AAAAAAAAAAAA", "trees/aaaaaaaaaa/.", "../aaaaaaaaaaaa", "x"};
    struct tree tree;

    world_make();
    for (size_t i = 0; i < sizeof(TARGETS) / sizeof(TARGETS[0]); i++) {
        relink(TARGETS[i], CLAIM "/jobs/7");
        CHECK(tree_of_job(claim(), 7, &tree, &failure) == -1);
        CHECK(failure.scope == FAILURE_JOB);
        CHECK_SAYS(failure.text, "jobs/7: Bad message");
    }
    CHECK(tree_of_job(claim(), 8, &tree, &failure) == 0);
}

TEST(without_an_active_tree_no_job_enters)
{
    struct tree tree;

    world_make();
    CHECK(unlink(CLAIM "/active") == 0);
    CHECK(tree_of_job(claim(), 7, &tree, &failure) == -1);
    CHECK(failure.scope == FAILURE_VOLUME);
    CHECK_SAYS(failure.text, "active: No such file or directory");
}

TEST(a_volume_without_room_for_a_record_is_the_jobs_failure)
{
    struct tree tree;

    world_make();
    CHECK(mount("full", CLAIM "/jobs", "tmpfs", 0, "nr_inodes=1") == 0);
    CHECK(tree_of_job(claim(), 7, &tree, &failure) == -1);
    CHECK(failure.scope == FAILURE_JOB);
    CHECK_SAYS(failure.text, "jobs/7: No space left on device");
}

TEST(a_volume_that_is_read_only_concerns_the_volume)
{
    struct tree tree;

    world_make();
    CHECK(mount("gone", CLAIM "/jobs", "tmpfs", MS_RDONLY, NULL) == 0);
    CHECK(tree_of_job(claim(), 7, &tree, &failure) == -1);
    CHECK(failure.scope == FAILURE_VOLUME);
}

TEST(an_active_tree_that_is_gone_is_refused)
{
    struct tree tree;

    world_make();
    relink("trees/cccccccccccc", CLAIM "/active");
    CHECK(tree_of_job(claim(), 7, &tree, &failure) == -1);
    CHECK(failure.scope == FAILURE_JOB || failure.scope == FAILURE_VOLUME);
}

TEST(a_claim_that_is_not_mounted_is_refused)
{
    world_make();
    CHECK(claim_open("/run/nothing", &failure) == -1);
    CHECK(failure.scope == FAILURE_VOLUME);
    CHECK_SAYS(failure.text, "/run/nothing: No such file or directory");
}

TEST(a_tree_that_is_a_link_is_refused)
{
    struct tree tree;

    world_make();
    CHECK(symlink("/", CLAIM "/trees/cccccccccccc") == 0);
    relink("trees/cccccccccccc", CLAIM "/active");
    CHECK(tree_of_job(claim(), 7, &tree, &failure) == -1);
    CHECK_SAYS(failure.text, "trees/cccccccccccc: Not a directory");
}

TEST(a_tree_that_others_may_write_to_is_refused)
{
    struct tree tree;

    world_make();
    CHECK(chmod(TREE_PATH, 0775) == 0);
    CHECK(tree_of_job(claim(), 7, &tree, &failure) == -1);
    CHECK_SAYS(failure.text, "must be root's");
    CHECK(chmod(TREE_PATH, 0755) == 0);
    CHECK(chown(TREE_PATH, USER_ID, 0) == 0);
    CHECK(tree_of_job(claim(), 7, &tree, &failure) == -1);
}

static int first_task(void *argument)
{
    struct tree tree;
    char expected[TREE_NAME_SIZE] = "";
    char target[64] = "";

    (void)argument;
    if (tree_of_job(claim(), 7, &tree, &failure) < 0)
        return 1;
    if (readlink(CLAIM "/jobs/7", target, sizeof(target) - 1) < 0)
        return 2;
    snprintf(expected, sizeof(expected), "%.12s", target + strlen("trees/"));
    return strcmp(expected, tree.name) == 0 ? 0 : 3;
}

TEST(all_first_tasks_at_once_agree_while_the_tree_is_switched)
{
    enum { TASKS = 32 };
    pid_t children[TASKS];

    world_make();
    for (int i = 0; i < TASKS; i++) {
        CHECK((children[i] = fork()) >= 0);
        if (children[i] == 0)
            _exit(first_task(NULL));
        relink(i % 2 ? "trees/" TREE : "trees/" OTHER_TREE, CLAIM "/.next");
        CHECK(rename(CLAIM "/.next", CLAIM "/active") == 0);
    }
    for (int i = 0; i < TASKS; i++)
        CHECK(test_await(children[i]) == 0);
}
