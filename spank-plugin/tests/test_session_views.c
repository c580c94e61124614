#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../session_views.h"
#include "../view_usage.h"
#include "harness.h"
#include "world.h"

static struct jail_config config;
static struct failure failure;

static void begin(void)
{
    static const char *const ARGUMENTS[] = {"bind=/home"};

    world_make();
    world_configure(&config, 1, ARGUMENTS);
    CHECK(session_views_prepare(&failure) == 0);
}

static void follow(void)
{
    if (session_views_follow(&config, &failure) < 0)
        CHECK_SAYS(failure.text, "(no failure)");
}

static void switch_to(const char *tree)
{
    char target[64];

    snprintf(target, sizeof(target), "trees/%s", tree);
    CHECK(symlink(target, CLAIM "/.next") == 0);
    CHECK(rename(CLAIM "/.next", CLAIM "/active") == 0);
}

/* A session in the view that is for new ones now; it ends when the test ends or kills it. */
static pid_t open_session(void)
{
    int ready[2];
    char byte;
    pid_t session;

    CHECK(pipe(ready) == 0);
    CHECK((session = fork()) >= 0);
    if (session == 0) {
        if (chroot(VIEWS "/active") < 0 || chdir("/") < 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        alarm(60);
        pause();
        _exit(0);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    return session;
}

static void end_session(pid_t session)
{
    CHECK(kill(session, SIGKILL) == 0);
    CHECK(test_await(session) == 128 + SIGKILL);
}

static int views(void)
{
    struct view_usage found[VIEW_USAGE_MAX];

    return view_usage_find(found, &failure);
}

static bool is_used(const char *tree)
{
    struct view_usage found[VIEW_USAGE_MAX];
    int count = view_usage_find(found, &failure);

    for (int i = 0; i < count; i++)
        if (strcmp(found[i].tree, tree) == 0)
            return found[i].used;
    return false;
}

TEST(new_sessions_enter_the_active_tree)
{
    begin();
    follow();
    CHECK(world_holds(VIEWS "/active/etc/name", TREE));
    CHECK(access(VIEWS "/active/proc/self", F_OK) == 0);
    CHECK(access(VIEWS "/active/var/spool/slurmd", F_OK) == -1);
    switch_to(OTHER_TREE);
    follow();
    CHECK(world_holds(VIEWS "/active/etc/name", OTHER_TREE));
}

TEST(sshd_accepts_the_way_to_a_view)
{
    struct stat status;

    begin();
    CHECK(chmod(VIEWS, 01777) == 0);
    CHECK(session_views_prepare(&failure) == 0);
    follow();
    CHECK(stat(VIEWS, &status) == 0 && status.st_uid == 0 && (status.st_mode & 07777) == 0755);
    CHECK(stat(VIEWS "/active", &status) == 0 && status.st_uid == 0 && (status.st_mode & 07777) == 0755);
}

TEST(a_view_is_built_once)
{
    begin();
    CHECK(session_views_follow(&config, &failure) == 1);
    for (int i = 0; i < 3; i++)
        CHECK(session_views_follow(&config, &failure) == 0);
    CHECK(views() == 1);
    switch_to(OTHER_TREE);
    follow();
    switch_to(TREE);
    follow();
    CHECK(views() == 2);
}

TEST(an_open_session_counts_as_use)
{
    pid_t session;

    begin();
    follow();
    CHECK(!is_used(TREE));
    session = open_session();
    CHECK(is_used(TREE));
    switch_to(OTHER_TREE);
    follow();
    CHECK(is_used(TREE) && !is_used(OTHER_TREE));
    end_session(session);
    CHECK(!is_used(TREE));
}

TEST(views_that_nobody_is_in_are_taken_away)
{
    pid_t session;

    begin();
    follow();
    session = open_session();
    switch_to(OTHER_TREE);
    follow();
    CHECK(session_views_tidy(&failure) == 0);
    CHECK(views() == 2);
    end_session(session);
    CHECK(session_views_tidy(&failure) == 0);
    CHECK(views() == 1);
    CHECK(access(VIEWS "/" TREE, F_OK) == -1 && errno == ENOENT);
    CHECK(world_holds(VIEWS "/active/etc/name", OTHER_TREE));
    CHECK(world_holds(TREE_PATH "/etc/name", TREE));
}

TEST(a_view_that_fails_leaves_new_sessions_where_they_were)
{
    begin();
    follow();
    switch_to(OTHER_TREE);
    world_write(CLAIM "/trees/" OTHER_TREE "/home", "a file in the way");
    CHECK(session_views_follow(&config, &failure) == -1);
    CHECK_SAYS(failure.text, "/home");
    CHECK(world_holds(VIEWS "/active/etc/name", TREE));
    CHECK(views() == 1);
    CHECK(unlink(CLAIM "/trees/" OTHER_TREE "/home") == 0);
    follow();
    CHECK(world_holds(VIEWS "/active/etc/name", OTHER_TREE));
}

TEST(without_an_active_tree_there_is_no_view)
{
    begin();
    CHECK(unlink(CLAIM "/active") == 0);
    CHECK(session_views_follow(&config, &failure) == -1);
    CHECK_SAYS(failure.text, "active: No such file or directory");
    CHECK(views() == 0);
}

TEST(what_a_container_before_has_left_is_built_anew)
{
    begin();
    CHECK(mkdir(VIEWS "/" TREE, 0755) == 0);
    CHECK(symlink(TREE, VIEWS "/active") == 0);
    follow();
    CHECK(views() == 1);
    CHECK(world_holds(VIEWS "/active/etc/name", TREE));
}
