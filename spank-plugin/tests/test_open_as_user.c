/* The calls that these tests make are slurmd's. They end as a user, of whose process no leak check can be made. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "world.h"

#define DONE() _exit(0)

static void make_world(void)
{
    world_make();
    CHECK(chmod("/home", 0777) == 0);
    CHECK(mkfifo("/home/pipe", 0666) == 0 && chmod("/home/pipe", 0666) == 0);
    CHECK(symlink("/dev/zero", "/home/zero") == 0 && symlink("/dev/null", "/home/null") == 0);
    CHECK(seteuid(USER_ID) == 0);
}

TEST(a_users_files_are_opened_as_asked)
{
    int file;

    make_world();
    CHECK((file = open("/home/new", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0640)) >= 0);
    CHECK((fcntl(file, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK)) == (O_WRONLY | O_APPEND));
    CHECK(fcntl(file, F_GETFD) & FD_CLOEXEC);
    CHECK(write(file, "text", 4) == 4);
    CHECK(open("/home/new", O_WRONLY | O_CREAT | O_EXCL, 0640) == -1 && errno == EEXIST);
    CHECK(world_holds("/home/new", "text"));
    CHECK((file = open("/home/null", O_RDWR)) >= 0 && write(file, "x", 1) == 1);
    CHECK((file = open("/home", O_RDONLY | O_NONBLOCK)) >= 0 && (fcntl(file, F_GETFL) & O_NONBLOCK));
    DONE();
}

TEST(a_named_pipe_of_a_user_neither_blocks_nor_opens)
{
    make_world();
    alarm(10);
    CHECK(open("/home/pipe", O_WRONLY | O_CREAT | O_TRUNC, 0600) == -1 && errno == ENXIO);
    CHECK(open("/home/pipe", O_RDONLY) == -1 && errno == EACCES);
    CHECK(open("/home/pipe", O_RDWR) == -1 && errno == EACCES);
    DONE();
}

TEST(a_device_of_a_user_does_not_open)
{
    make_world();
    CHECK(open("/home/zero", O_WRONLY) == -1 && errno == EACCES);
    CHECK(open("/dev/ptmx", O_RDWR) == -1 && errno == EACCES);
    DONE();
}

TEST(root_opens_what_it_likes)
{
    int file;

    make_world();
    CHECK(seteuid(0) == 0);
    CHECK((file = open("/dev/zero", O_RDONLY)) >= 0);
    CHECK((file = open("/home/pipe", O_RDWR)) >= 0 && !(fcntl(file, F_GETFL) & O_NONBLOCK));
    DONE();
}

/* As close_volumes.sh leaves a volume. */
static void refuse_links_in(const char *path)
{
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_NOSYMFOLLOW};

    CHECK(seteuid(0) == 0);
    CHECK(mount_setattr(AT_FDCWD, path, 0, &attributes, sizeof(attributes)) == 0);
}

static void link_in_home(void)
{
    make_world();
    CHECK(mkdir("/home/data", 0755) == 0);
    CHECK(symlink("data", "/home/inner") == 0 && symlink("/home/inner/file", "/home/far") == 0);
    CHECK(symlink("turn", "/home/turn") == 0);
    refuse_links_in("/home");
}

TEST(links_in_a_users_paths_are_followed_as_the_user)
{
    char directory[64];
    int file;

    link_in_home();
    CHECK(seteuid(USER_ID) == 0);
    CHECK(open("/home/far", O_WRONLY | O_CREAT | O_EXCL, 0640) == -1 && errno == EEXIST);
    CHECK((file = open("/home/far", O_WRONLY | O_CREAT, 0640)) >= 0 && write(file, "text", 4) == 4);
    CHECK((file = open("/home/inner/other", O_WRONLY | O_CREAT, 0640)) >= 0);
    CHECK(mkdir("/home/inner/new", 0755) == 0);
    CHECK(chdir("/home/inner") == 0 && getcwd(directory, sizeof(directory)) && !strcmp(directory, "/home/data"));
    CHECK((file = open("../inner/file", O_RDONLY)) >= 0);
    CHECK(open("/home/turn", O_RDONLY) == -1 && errno == ELOOP);
    CHECK(open("/home/turn", O_WRONLY | O_CREAT, 0600) == -1 && errno == ELOOP);
    CHECK(open("/home/inner/none/file", O_WRONLY | O_CREAT, 0600) == -1 && errno == ENOENT);
    DONE();
}

TEST(root_follows_no_link_of_users)
{
    link_in_home();
    CHECK(open("/home/far", O_WRONLY | O_CREAT, 0600) == -1 && errno == ELOOP);
    CHECK(open("/home/inner/file", O_WRONLY | O_CREAT, 0600) == -1 && errno == ELOOP);
    CHECK(chdir("/home/inner") == -1 && errno == ELOOP);
    CHECK(mkdir("/home/inner/new", 0755) == -1 && errno == ELOOP);
    CHECK(access("/home/data/file", F_OK) == -1);
    DONE();
}
