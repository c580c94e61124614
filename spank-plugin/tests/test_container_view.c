#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "../container_view.h"
#include "../enter_view.h"
#include "../mountinfo.h"
#include "../tree.h"
#include "../view.h"
#include "harness.h"
#include "world.h"

/* Of the user, in a home that is closed to others; the jail has it at the same path. */
#define HOME "/home/user"
#define IMAGE HOME "/image"

static struct jail_config config;
static struct failure failure;
static struct container container;
static struct person person = {.user = USER_ID, .group = USER_ID, .name = "user", .home = HOME};

static void own(const char *path)
{
    CHECK(lchown(path, USER_ID, USER_ID) == 0);
}

static void own_folder(const char *path, mode_t mode)
{
    CHECK(mkdir(path, mode) == 0);
    own(path);
}

static void own_file(const char *path, const char *text)
{
    world_write(path, text);
    own(path);
}

static void own_link(const char *target, const char *path)
{
    CHECK(symlink(target, path) == 0);
    own(path);
}

/* A world with an image that has etc/name alone, and a home of another user. */
static void make(void)
{
    static const char *const ARGUMENTS[] = {"bind=/home", "bind=/tmp", "containers=16"};

    world_make();
    own_folder(HOME, 0700);
    own_folder(IMAGE, 0755);
    own_folder(IMAGE "/etc", 0755);
    own_file(IMAGE "/etc/name", "image");
    CHECK(mkdir("/home/other", 0700) == 0);
    world_write("/home/other/secret", "of another");
    world_configure(&config, 3, ARGUMENTS);
}

/* In the admin's store: root's, and open to all. */
#define PUBLISHED PUBLISHED_IMAGES "/image"

static void make_published(const char *bind)
{
    const char *const arguments[] = {"bind=/home", "bind=/tmp", "containers=16", bind};

    make();
    CHECK(mkdir("/var/lib/soperator", 0755) == 0 && mkdir(PUBLISHED_IMAGES, 0755) == 0 && mkdir(PUBLISHED, 0755) == 0);
    CHECK(chmod(PUBLISHED, 0777) == 0 && mkdir(PUBLISHED "/etc", 0777) == 0 && chmod(PUBLISHED "/etc", 0777) == 0);
    world_write(PUBLISHED "/etc/name", "image");
    world_write(PUBLISHED "/etc/passwd", "root:x:0:0::/:/bin/sh\n");
    CHECK(chmod(PUBLISHED "/etc/name", 0666) == 0 && chmod(PUBLISHED "/etc/passwd", 0666) == 0);
    world_configure(&config, bind ? 4 : 3, arguments);
}

static void want_mount(const char *source, const char *target, bool read_only)
{
    container.mounts[container.mount_count++] =
        (struct container_mount){.source = source, .target = target, .read_only = read_only};
}

static bool keep; /* what the task changes */

static int enter_tree(const char *path)
{
    struct view jail = {.config = &config, .job = true, .job_id = 12};
    struct container_view view = {.config = &config, .container = &container, .person = &person, .tree = path, .keep = keep,
                                  .directory = "/work/deep"};
    struct tree tree;
    int claim, root;

    CHECK(enter_namespace(&failure) == 0);
    CHECK((claim = claim_open(config.jail, &failure)) >= 0);
    CHECK(tree_of_job(claim, 12, &tree, &failure) == 0);
    jail.tree = jail.place = tree.fd;
    CHECK((root = view_build(&jail, &failure)) >= 0);
    CHECK(enter_root(root, &failure) == 0);
    return container_view_enter(&view, &failure);
}

static void enter(void)
{
    if (enter_tree(IMAGE) < 0)
        CHECK_SAYS(failure.text, "(no failure)");
}

static unsigned long flags_of(const char *path)
{
    struct statvfs status;

    CHECK(statvfs(path, &status) == 0);
    return status.f_flag;
}

/* The tests end in the view, where no leak check can run. */
#define DONE() _exit(0)

TEST(the_image_is_the_root_and_nothing_of_the_jail_or_of_the_worker_is_in_it)
{
    make();
    enter();
    CHECK(world_holds("/etc/name", "image"));
    CHECK(access("/usr", F_OK) == -1 && access("/home/user/image", F_OK) == -1 && access("/run/container", F_OK) == -1);
    CHECK(access("/run/claim", F_OK) == -1 && access("/bin/sh", F_OK) == -1);
    CHECK((flags_of("/") & (ST_NOSUID | ST_NODEV | ST_NOEXEC)) == (ST_NOSUID | ST_NODEV));
    DONE();
}

TEST(an_image_without_any_folder_has_what_jobs_need)
{
    static const char *const PATHS[] = {"/proc/self/status", "/sys/kernel", "/dev/null", "/run/munge", "/tmp",
                                        "/etc/hosts", "/etc/resolv.conf", "/opt/slurm", PMIX_DIRECTORY};

    make();
    enter();
    for (size_t i = 0; i < sizeof(PATHS) / sizeof(PATHS[0]); i++)
        CHECK(access(PATHS[i], F_OK) == 0);
    CHECK((flags_of("/opt/slurm") & ST_RDONLY) && (flags_of("/sys") & ST_RDONLY));
    DONE();
}

TEST(changes_are_made_by_the_user_and_never_reach_the_image)
{
    make();
    enter();
    world_become_user();
    world_write("/etc/name", "changed");
    world_write("/new", "x");
    CHECK(world_holds("/etc/name", "changed"));
    CHECK(open("/etc/name", O_RDONLY | O_CLOEXEC) >= 0);
    DONE();
}

static int change_the_image(void *unused)
{
    (void)unused;
    enter();
    world_become_user();
    world_write("/etc/name", "changed");
    DONE();
}

TEST(the_next_container_of_an_image_finds_it_as_it_was)
{
    make();
    CHECK(test_in_child(change_the_image, NULL) == 0);
    CHECK(world_holds(IMAGE "/etc/name", "image"));
    CHECK(access(IMAGE "/proc", F_OK) == -1 && access(IMAGE "/etc/hosts", F_OK) == -1);
}

TEST(a_read_only_container_takes_no_change)
{
    make();
    container.read_only = true;
    enter();
    world_become_user();
    CHECK(open("/etc/name", O_WRONLY) == -1 && errno == EROFS);
    CHECK(open("/tmp/x", O_WRONLY | O_CREAT, 0600) >= 0);
    DONE();
}

TEST(the_working_directory_and_the_home_are_empty_folders_unless_they_are_wanted)
{
    make();
    enter();
    world_become_user();
    CHECK(rmdir("/work/deep") == 0 && rmdir(HOME) == 0);
    DONE();
}

TEST(the_home_is_there_when_it_is_wanted_and_homes_of_others_never)
{
    make();
    container.mount_home = true;
    enter();
    CHECK(world_holds(IMAGE "/etc/name", "image"));
    CHECK(access("/home/other", F_OK) == -1 && errno == ENOENT);
    DONE();
}

TEST(mounts_are_at_their_targets_with_their_flags)
{
    make();
    own_folder(HOME "/data", 0700);
    own_file(HOME "/data/x", "data");
    want_mount(HOME "/data", "/deep/in/it", true);
    want_mount(HOME "/data/x", "/etc/name", false);
    want_mount(HOME "/data/x", "/etc/new", false);
    enter();
    CHECK(world_holds("/deep/in/it/x", "data") && world_holds("/etc/name", "data") && world_holds("/etc/new", "data"));
    CHECK(flags_of("/deep/in/it") & ST_RDONLY);
    CHECK(flags_of("/deep/in/it") & ST_NOSUID && flags_of("/deep/in/it") & ST_NODEV);
    DONE();
}

static int count_mount(const struct mountinfo_line *line, void *counts)
{
    if (strncmp(line->point, "/m0/", 4) == 0)
        ((int *)counts)[0]++;
    else if (strncmp(line->point, "/m3/", 4) == 0)
        ((int *)counts)[1]++;
    return 0;
}

TEST(mounts_of_the_whole_jail_have_nothing_of_the_container_and_so_do_not_multiply)
{
    int counts[2] = {0, 0};

    make();
    want_mount("/", "/m0", false);
    want_mount("/", "/m1", false);
    want_mount("/run", "/m2", false);
    want_mount("/", "/m3", false);
    enter();
    CHECK(mountinfo_each("/proc/self/mountinfo", count_mount, counts) == 0);
    CHECK(counts[0] > 0 && counts[0] == counts[1]);
    CHECK(access("/m0/run/container/upper", F_OK) == -1 && access("/m2/container/upper", F_OK) == -1);
    DONE();
}

TEST(a_mount_wins_over_a_submount_of_the_jail)
{
    make();
    own_folder(HOME "/data", 0700);
    own_file(HOME "/data/x", "data");
    want_mount(HOME "/data", "/tmp", false);
    enter();
    CHECK(world_holds("/tmp/x", "data"));
    DONE();
}

TEST(the_user_has_a_name_in_an_image_that_has_none)
{
    make();
    own_file(IMAGE "/etc/passwd", "root:x:0:0::/:/bin/sh\n");
    enter();
    CHECK(world_holds("/etc/passwd", "root:x:0:0::/:/bin/sh\n\nuser:x:4711:4711:"));
    CHECK(world_holds("/etc/group", "\nuser:x:4711:"));
    DONE();
}

static int change_published(void *unused)
{
    struct stat status;

    (void)unused;
    if (enter_tree(PUBLISHED) < 0)
        CHECK_SAYS(failure.text, "(no failure)");
    CHECK(world_holds("/etc/passwd", "root:x:0:0::/:/bin/sh\n\nuser:x:4711:4711:"));
    CHECK(access(PUBLISHED_IMAGES, F_OK) == -1 && access("/opt/slurm", F_OK) == 0);
    world_become_user();
    world_write("/etc/name", "changed");
    world_write("/etc/new", "x");
    CHECK(world_holds("/etc/name", "changed"));
    CHECK(stat("/etc/name", &status) == 0 && status.st_uid == 0 && (status.st_mode & 0777) == 0666);
    CHECK(chown("/etc/name", USER_ID, USER_ID) == -1 && errno == EPERM);
    CHECK(chmod("/etc/name", 04755) == -1 && errno == EPERM);
    CHECK(unlink("/etc/passwd") == 0 && rename("/etc/new", "/etc/passwd") == 0);
    DONE();
}

TEST(a_published_image_is_changed_in_the_layer_and_stays_as_it_is)
{
    make_published("bind=" PUBLISHED_IMAGES ":ro");
    CHECK(test_in_child(change_published, NULL) == 0);
    CHECK(test_in_child(change_published, NULL) == 0);
    CHECK(world_holds(PUBLISHED "/etc/name", "image") && access(PUBLISHED "/etc/new", F_OK) == -1);
    CHECK(access(PUBLISHED "/opt", F_OK) == -1);
}

static int see_no_copies(void *unused)
{
    (void)unused;
    if (enter_tree(LOCAL_IMAGES "/4711/image") < 0)
        CHECK_SAYS(failure.text, "(no failure)");
    CHECK(world_holds("/name", "copy"));
    CHECK(access(LOCAL_IMAGES, F_OK) == -1);
    DONE();
}

TEST(a_copy_on_the_nodes_disk_starts_and_its_container_sees_no_other_copy)
{
    const char *const arguments[] = {"bind=/home", "bind=/tmp", "containers=16", "bind=" LOCAL_IMAGES};

    make();
    CHECK(mkdir("/var/lib/soperator", 0755) == 0 && mkdir(LOCAL_IMAGES, 0755) == 0);
    CHECK(mkdir(LOCAL_IMAGES "/4711", 0700) == 0 && mkdir(LOCAL_IMAGES "/4711/image", 0755) == 0);
    world_write(LOCAL_IMAGES "/4711/image/name", "copy");
    CHECK(chown(LOCAL_IMAGES "/4711", USER_ID, USER_ID) == 0 && chown(LOCAL_IMAGES "/4711/image", USER_ID, USER_ID) == 0);
    world_configure(&config, 4, arguments);
    CHECK(test_in_child(see_no_copies, NULL) == 0);
    DONE();
}

static void is_no_folder_of_the_users(const char *tree)
{
    CHECK(enter_tree(tree) == -1);
    CHECK(failure.scope == FAILURE_JOB);
    CHECK_SAYS(failure.text, "is not a folder of the user");
}

TEST(a_folder_of_root_is_refused_if_users_could_write_to_the_store)
{
    make_published("bind=" PUBLISHED_IMAGES);
    is_no_folder_of_the_users(PUBLISHED);
    DONE();
}

TEST(a_folder_of_root_is_refused_on_a_cluster_that_publishes_nothing)
{
    make_published(NULL);
    is_no_folder_of_the_users("/etc");
    DONE();
}

TEST(a_folder_of_root_outside_of_the_store_is_refused)
{
    make_published("bind=" PUBLISHED_IMAGES ":ro");
    is_no_folder_of_the_users("/etc");
    DONE();
}

TEST(a_folder_of_another_user_in_the_store_is_refused)
{
    make_published("bind=" PUBLISHED_IMAGES ":ro");
    CHECK(chown(PUBLISHED, 4712, 4712) == 0);
    is_no_folder_of_the_users(PUBLISHED);
    DONE();
}

TEST(a_published_image_is_no_named_container)
{
    make_published("bind=" PUBLISHED_IMAGES ":ro");
    keep = true;
    is_no_folder_of_the_users(PUBLISHED);
    DONE();
}

/* The hostile ones: what a path leads to is found with the user's rights, and inside of the container. */

static void is_refused(const char *part)
{
    CHECK(enter_tree(IMAGE) == -1);
    CHECK(failure.scope == FAILURE_JOB);
    CHECK_SAYS(failure.text, part);
}

/* In a task of its own: the next one finds what it has changed. */
static int change_and_end(void *unused)
{
    (void)unused;
    keep = true;
    enter();
    world_become_user();
    CHECK(world_holds("/etc/name", "image") && access("/proc/self/status", F_OK) == 0 && access("/dev/null", F_OK) == 0);
    CHECK(flags_of("/") & ST_NOSUID && flags_of("/") & ST_NODEV && flags_of("/opt/slurm") & ST_RDONLY);
    world_write("/etc/kept", "kept");
    DONE();
}

TEST(a_named_container_keeps_what_a_task_changes_in_it)
{
    make();
    CHECK(test_in_child(change_and_end, NULL) == 0);
    CHECK(world_holds(IMAGE "/etc/kept", "kept"));
    CHECK(access(IMAGE "/proc/self", F_OK) == -1 && access(IMAGE "/run/munge", F_OK) == -1);
}

static int enter_and_end(void *unused)
{
    (void)unused;
    keep = true;
    enter();
    DONE();
}

TEST(a_named_container_gets_a_line_for_the_user_once)
{
    make();
    for (int i = 0; i < 3; i++)
        CHECK(test_in_child(enter_and_end, NULL) == 0);
    CHECK(world_holds(IMAGE "/etc/passwd", "\nuser:x:4711:4711::/home/user:/bin/sh\n"));
    CHECK(!world_holds(IMAGE "/etc/passwd", "\nuser:x:4711:4711::/home/user:/bin/sh\n\nuser"));
}

static int change_read_only(void *unused)
{
    (void)unused;
    keep = container.read_only = true;
    enter();
    CHECK(flags_of("/") & ST_RDONLY);
    DONE();
}

TEST(a_named_container_can_be_read_only)
{
    make();
    CHECK(test_in_child(change_read_only, NULL) == 0);
    CHECK(access(IMAGE "/new", F_OK) == -1);
}

static int mount_over_etc_of_the_same_volume(void *unused)
{
    (void)unused;
    keep = true;
    want_mount(HOME "/data", "/etc", false);
    enter();
    CHECK(access("/etc/hosts", F_OK) == -1);
    DONE();
}

TEST(a_named_container_makes_no_place_in_a_folder_that_is_mounted_in_it)
{
    make();
    own_folder(HOME "/data", 0755);
    CHECK(test_in_child(mount_over_etc_of_the_same_volume, NULL) == 0);
    CHECK(rmdir(HOME "/data") == 0);
}

TEST(a_named_container_that_leads_to_what_is_not_the_users_is_refused)
{
    make();
    keep = true;
    CHECK(rename(IMAGE, HOME "/kept") == 0);
    own_link("/", IMAGE);
    is_refused("is not a folder of the user");
    CHECK(unlink(IMAGE) == 0);
    DONE();
}

TEST(what_the_user_cannot_reach_is_not_mounted)
{
    make();
    want_mount("/home/other/secret", "/x", false);
    is_refused("--container-mounts: open /home/other/secret: Permission denied");
    DONE();
}

TEST(a_link_in_a_source_leads_no_further_than_the_user_gets)
{
    make();
    own_link("/home/other/secret", HOME "/link");
    want_mount(HOME "/link", "/x", false);
    is_refused("Permission denied");
    DONE();
}

TEST(open_files_of_the_task_are_not_mounted_by_their_links_in_proc)
{
    make();
    want_mount("/proc/self/root", "/x", false);
    is_refused("--container-mounts: open /proc/self/root");
    DONE();
}

TEST(nothing_of_proc_is_mounted_elsewhere)
{
    make();
    want_mount("/proc/self", "/x", false);
    is_refused("of /proc a container has its own");
    DONE();
}

TEST(nothing_of_the_containers_own_root_is_mounted_and_so_no_mount_multiplies)
{
    make();
    want_mount("/run/container/root", "/x", false);
    is_refused("--container-mounts: /run/container/root: nothing in /run/container can be mounted");
    DONE();
}

TEST(the_folder_in_which_containers_are_made_is_not_mounted)
{
    make();
    want_mount("/run/container", "/x", false);
    is_refused("--container-mounts: /run/container: nothing in /run/container can be mounted");
    DONE();
}

TEST(a_mount_of_a_container_is_not_mounted_in_it_again)
{
    make();
    own_folder(HOME "/data", 0700);
    want_mount(HOME "/data", "/m0", false);
    want_mount("/run/container/root/m0", "/x", false);
    is_refused("nothing in /run/container can be mounted");
    DONE();
}

TEST(a_link_to_the_containers_own_root_is_not_followed_into_a_mount)
{
    make();
    own_link("/run/container/root/etc", HOME "/link");
    want_mount(HOME "/link", "/x", false);
    is_refused("nothing in /run/container can be mounted");
    DONE();
}

TEST(nothing_is_mounted_over_the_root)
{
    make();
    own_folder(HOME "/data", 0700);
    own_link("/..", IMAGE "/up");
    want_mount(HOME "/data", "/up/./..", false);
    is_refused("would hide the image");
    DONE();
}

TEST(links_of_an_image_at_places_of_the_view_lead_to_nothing_outside)
{
    make();
    own_link("/../../home/other", IMAGE "/proc");
    own_link("../../../../srv", IMAGE "/sys");
    own_link("/home/other/secret", IMAGE "/etc/passwd");
    own_link("/proc/self/root/etc/group", IMAGE "/etc/group");
    own_link("/home/../elsewhere", IMAGE "/run");
    enter();
    CHECK(flags_of("/proc") & ST_NOEXEC);
    CHECK(access("/proc/self/status", F_OK) == 0 && access("/run/munge", F_OK) == 0);
    CHECK(!world_holds("/home/other/secret", "of another"));
    DONE();
}

TEST(an_image_whose_proc_leads_to_a_folder_of_the_users_is_refused)
{
    make();
    CHECK(mount("world", "/dev/shm", "tmpfs", 0, "mode=1777") == 0);
    own_folder("/dev/shm/self", 0755);
    own_folder("/dev/shm/self/fd", 0755);
    own_link("dev/shm", IMAGE "/proc");
    is_refused("/proc is not the kernel's: make it a folder in the image");
    DONE();
}

TEST(a_mount_over_a_place_of_the_view_is_below_it)
{
    make();
    own_folder(HOME "/data", 0700);
    own_folder(HOME "/data/self", 0700);
    want_mount(HOME "/data", "/proc", false);
    want_mount(HOME "/data", "/opt/slurm", false);
    want_mount(HOME "/data", "/dev", false);
    enter();
    CHECK(access("/proc/self/status", F_OK) == 0 && access("/dev/null", F_OK) == 0);
    CHECK(flags_of("/opt/slurm") & ST_RDONLY);
    DONE();
}

TEST(nothing_is_mounted_over_the_root_by_a_folder_that_is_not_there_yet)
{
    make();
    CHECK(mkdir("/home/open", 0755) == 0);
    want_mount("/home/open", "/missing/..", false);
    is_refused("would hide the image");
    DONE();
}

static int mount_over_etc(void *read_only)
{
    want_mount(HOME "/data", "/etc", read_only != NULL);
    enter();
    CHECK(world_holds("/etc/own", "data") && access("/etc/hosts", F_OK) == -1);
    CHECK(access("/proc/self/status", F_OK) == 0 && access("/run/munge", F_OK) == 0);
    DONE();
}

TEST(a_folder_that_is_mounted_where_the_view_needs_a_place_keeps_what_it_has)
{
    make();
    own_folder(HOME "/data", 0755);
    own_file(HOME "/data/own", "data");
    CHECK(test_in_child(mount_over_etc, NULL) == 0);
    CHECK(test_in_child(mount_over_etc, &config) == 0);
    CHECK(unlink(HOME "/data/own") == 0 && rmdir(HOME "/data") == 0);
}

TEST(a_file_of_the_jail_is_shown_in_a_mount_that_has_a_place_for_it)
{
    make();
    own_folder(HOME "/data", 0755);
    own_file(HOME "/data/hosts", "data");
    want_mount(HOME "/data", "/etc", true);
    enter();
    CHECK(access("/etc/hosts", F_OK) == 0 && !world_holds("/etc/hosts", "data"));
    DONE();
}

static int mount_over_the_working_directory(void *unused)
{
    (void)unused;
    want_mount(HOME "/data", "/work", false);
    enter();
    DONE();
}

TEST(no_working_directory_is_made_in_a_mount)
{
    make();
    own_folder(HOME "/data", 0755);
    CHECK(test_in_child(mount_over_the_working_directory, NULL) == 0);
    CHECK(rmdir(HOME "/data") == 0);
}

TEST(a_mount_that_hides_what_slurm_gives_to_jobs_is_refused)
{
    make();
    own_folder(HOME "/data", 0755);
    want_mount(HOME "/data", "/var", false);
    is_refused("--container-mounts hides /var/spool/slurmd, which jobs need");
    DONE();
}

static int mount_roots_folder(void *unused)
{
    (void)unused;
    want_mount("/home/open", "/etc", false);
    enter();
    DONE();
}

TEST(nothing_is_made_in_a_folder_of_root_that_is_mounted_where_the_view_needs_a_place)
{
    make();
    CHECK(mkdir("/home/open", 0755) == 0);
    CHECK(test_in_child(mount_roots_folder, NULL) == 0);
    CHECK(rmdir("/home/open") == 0);
}

TEST(an_image_that_is_not_the_users_is_refused)
{
    make();
    CHECK(mkdir("/home/open", 0755) == 0);
    CHECK(enter_tree("/home/open") == -1 && failure.scope == FAILURE_JOB);
    CHECK_SAYS(failure.text, "/home/open is not a folder of the user");
    DONE();
}

TEST(a_folder_of_the_users_in_proc_is_no_image)
{
    make();
    CHECK(enter_tree("/proc/self") == -1 && failure.scope == FAILURE_JOB);
    DONE();
}

TEST(files_of_others_in_an_image_stay_closed)
{
    make();
    world_write(IMAGE "/etc/closed", "of root");
    CHECK(chmod(IMAGE "/etc/closed", 0600) == 0);
    CHECK(chmod(IMAGE "/etc/name", 06755) == 0);
    enter();
    CHECK(flags_of("/") & ST_NOSUID);
    world_become_user();
    CHECK(open("/etc/closed", O_RDONLY) == -1 && errno == EACCES);
    DONE();
}

TEST(a_pipe_in_place_of_a_file_holds_nobody)
{
    make();
    CHECK(mkfifo(IMAGE "/etc/passwd", 0666) == 0);
    own(IMAGE "/etc/passwd");
    enter();
    DONE();
}

TEST(changes_have_a_size)
{
    static char block[1 << 20];
    int file;

    make();
    enter();
    world_become_user();
    CHECK((file = open("/big", O_WRONLY | O_CREAT, 0600)) >= 0);
    for (int i = 0; i < 15; i++)
        CHECK(write(file, block, sizeof(block)) == sizeof(block));
    while (write(file, block, sizeof(block)) > 0)
        ;
    CHECK(errno == ENOSPC);
    DONE();
}

TEST(changes_may_be_a_file_for_every_4_kib)
{
    struct statvfs status;

    make();
    enter();
    CHECK(statvfs("/", &status) == 0 && status.f_files == 16 * 256);
    DONE();
}
