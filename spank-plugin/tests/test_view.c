#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "../enter_view.h"
#include "../tree.h"
#include "../view.h"
#include "../view_driver.h"
#include "harness.h"
#include "world.h"

static struct jail_config config;
static struct failure failure;

/* Build a job's view of the active tree in the own mount namespace and enter it. */
static int enter_here(void)
{
    struct view view = {.config = &config, .job = true, .job_id = 12};
    struct tree tree;
    int claim, root;

    CHECK((claim = claim_open(config.jail, &failure)) >= 0);
    CHECK(tree_of_job(claim, 12, &tree, &failure) == 0);
    view.tree = view.place = tree.fd;
    root = view_build(&view, &failure);
    return root < 0 ? -1 : enter_root(root, &failure);
}

/* As a task does. */
static int enter(void)
{
    CHECK(enter_namespace(&failure) == 0);
    return enter_here();
}

#define CONFIGURE(...)                                                                                                 \
    do {                                                                                                               \
        static const char *const ARGUMENTS[] = {__VA_ARGS__};                                                          \
        world_configure(&config, (int)(sizeof(ARGUMENTS) / sizeof(ARGUMENTS[0])), ARGUMENTS);                          \
    } while (0)

static void enter_or_say(void)
{
    if (enter() < 0)
        CHECK_SAYS(failure.text, "(no failure)");
}

static unsigned long flags_of(const char *path)
{
    struct statvfs status;

    CHECK(statvfs(path, &status) == 0);
    return status.f_flag;
}

/* The tests below end in the view, where no leak check can run. */
#define DONE() _exit(0)

TEST(a_job_sees_the_cgroups_of_its_pod_read_only)
{
    world_make();
    CHECK(mount("cgroups", "/sys/fs/cgroup", "tmpfs", 0, NULL) == 0 && mkdir("/sys/fs/cgroup/system", 0755) == 0);
    CONFIGURE("bind=/home");
    enter_or_say();
    CHECK(access("/sys/fs/cgroup/system", F_OK) == 0);
    CHECK(flags_of("/sys/fs/cgroup") & ST_RDONLY);
    DONE();
}

TEST(a_task_sees_the_tree_as_its_root)
{
    world_make();
    CONFIGURE("bind=/tmp");
    enter_or_say();
    CHECK(world_holds("/etc/name", TREE));
    CHECK(access("/run/claim", F_OK) == -1 && errno == ENOENT);
    CHECK(access("/usr", F_OK) == -1 && errno == ENOENT);
    DONE();
}

TEST(nothing_of_the_tree_or_of_binds_is_set_user_id_or_a_device_and_all_can_be_executed)
{
    world_make();
    CHECK(mkdir("/home/data", 0755) == 0);
    CONFIGURE("bind=/home");
    enter_or_say();
    CHECK((flags_of("/") & (ST_NOSUID | ST_NODEV | ST_NOEXEC)) == (ST_NOSUID | ST_NODEV));
    CHECK((flags_of("/home") & (ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_RDONLY)) == (ST_NOSUID | ST_NODEV));
    CHECK((flags_of("/opt/slurm") & (ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_RDONLY)) ==
          (ST_NOSUID | ST_NODEV | ST_RDONLY));
    DONE();
}

TEST(what_jobs_must_not_change_is_read_only)
{
    static const char *const PATHS[] = {"/sys", "/run/munge", "/opt/slurm", "/var/lib/extrausers",
                                        "/etc/hosts", "/etc/resolv.conf", "/home"};

    world_make();
    CONFIGURE("bind=/home:ro");
    enter_or_say();
    for (size_t i = 0; i < sizeof(PATHS) / sizeof(PATHS[0]); i++)
        CHECK(flags_of(PATHS[i]) & ST_RDONLY);
    CHECK(open("/opt/slurm/x", O_WRONLY | O_CREAT, 0644) == -1 && errno == EROFS);
    CHECK(open("/home/x", O_WRONLY | O_CREAT, 0644) == -1 && errno == EROFS);
    DONE();
}

TEST(a_read_only_bind_is_so_down_to_the_last_mount_in_it)
{
    world_make();
    CHECK(mkdir("/home/inner", 0755) == 0);
    CHECK(mount("inner", "/home/inner", "tmpfs", 0, NULL) == 0);
    CONFIGURE("bind=/home:ro");
    enter_or_say();
    CHECK(open("/home/inner/x", O_WRONLY | O_CREAT, 0644) == -1 && errno == EROFS);
    DONE();
}

TEST(of_the_spool_a_job_sees_its_own_part_only)
{
    static const char *const PARTS[] = {"job00012", "job00013", "pmix.12.0", "conf-cache", "cred_state"};
    char path[64];

    world_make();
    for (size_t i = 0; i < sizeof(PARTS) / sizeof(PARTS[0]); i++) {
        snprintf(path, sizeof(path), "/var/spool/slurmd/%s", PARTS[i]);
        CHECK(mkdir(path, 0755) == 0);
    }
    world_write("/var/spool/slurmd/job00012/slurm_script", "#!/bin/sh\n");
    CONFIGURE("bind=/home");
    enter_or_say();
    CHECK(world_holds("/var/spool/slurmd/job00012/slurm_script", "#!/bin/sh"));
    CHECK(flags_of("/var/spool/slurmd/job00012") & ST_RDONLY);
    CHECK(flags_of("/var/spool/slurmd/conf-cache") & ST_RDONLY);
    CHECK(access("/var/spool/slurmd/job00013", F_OK) == -1);
    CHECK(access("/var/spool/slurmd/pmix.12.0", F_OK) == -1);
    CHECK(access("/var/spool/slurmd/cred_state", F_OK) == -1);
    DONE();
}

TEST(a_step_has_a_folder_for_pmix_among_those_of_others)
{
    world_make();
    CHECK(mkdir(PMIX_DIRECTORY "/own", 0700) == 0 && chown(PMIX_DIRECTORY "/own", USER_ID, USER_ID) == 0);
    CHECK(mkdir(PMIX_DIRECTORY "/other", 0700) == 0 && chown(PMIX_DIRECTORY "/other", USER_ID + 1, USER_ID) == 0);
    CONFIGURE("bind=/home");
    enter_or_say();
    world_become_user();
    CHECK(open(PMIX_DIRECTORY "/own/x", O_WRONLY | O_CREAT, 0600) >= 0);
    CHECK(open(PMIX_DIRECTORY "/other/x", O_WRONLY | O_CREAT, 0600) == -1 && errno == EACCES);
    CHECK(mkdir(PMIX_DIRECTORY "/next", 0700) == -1 && errno == EACCES);
    CHECK(open(PMIX_DIRECTORY, O_RDONLY | O_DIRECTORY) == -1 && errno == EACCES);
    DONE();
}

TEST(links_are_followed_in_a_view_of_volumes_whose_links_root_does_not_follow)
{
    struct mount_attr closed = {.attr_set = MOUNT_ATTR_NOSYMFOLLOW};

    world_make();
    world_write("/home/file", "text");
    CHECK(symlink("file", "/home/link") == 0 && symlink("name", TREE_PATH "/etc/link") == 0);
    CHECK(mount_setattr(AT_FDCWD, "/home", 0, &closed, sizeof(closed)) == 0);
    CHECK(mount_setattr(AT_FDCWD, "/run", 0, &closed, sizeof(closed)) == 0);
    CHECK(open("/home/link", O_RDONLY) == -1 && errno == ELOOP);
    CONFIGURE("bind=/home");
    enter_or_say();
    CHECK(world_holds("/home/link", "text"));
    CHECK(world_holds("/etc/link", TREE));
    DONE();
}

TEST(the_run_directory_holds_the_munge_of_jobs_and_no_other)
{
    world_make();
    CHECK(mkdir("/run/secrets", 0755) == 0);
    world_write("/run/munge/jobs/socket-of-jobs", "");
    world_write("/run/munge/socket-of-daemons", "");
    CONFIGURE("bind=/home");
    enter_or_say();
    CHECK(access("/run/munge/socket-of-jobs", F_OK) == 0);
    CHECK(access("/run/munge/socket-of-daemons", F_OK) == -1 && access("/run/munge/jobs", F_OK) == -1);
    CHECK(access("/run/secrets", F_OK) == -1);
    DONE();
}

TEST(a_job_in_a_pod_without_a_munge_of_jobs_has_that_of_daemons)
{
    world_make();
    CHECK(rmdir("/run/munge/jobs") == 0);
    world_write("/run/munge/socket-of-daemons", "");
    CONFIGURE("bind=/home");
    enter_or_say();
    CHECK(access("/run/munge/socket-of-daemons", F_OK) == 0);
    DONE();
}

TEST(a_user_sees_the_own_processes_only)
{
    world_make();
    CONFIGURE("bind=/home");
    enter_or_say();
    world_become_user();
    CHECK(access("/proc/self/status", R_OK) == 0);
    CHECK(access("/proc/1", F_OK) == -1 && errno == ENOENT);
    DONE();
}

TEST(what_the_runtime_masks_in_proc_stays_masked)
{
    world_make();
    CHECK(mount("/dev/null", "/proc/timer_list", NULL, MS_BIND, NULL) == 0);
    CHECK(mount("mask", "/proc/bus", "tmpfs", MS_RDONLY, NULL) == 0);
    CHECK(mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL) == 0);
    CHECK(mount(NULL, "/proc/sys", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0);
    CONFIGURE("bind=/home");
    enter_or_say();
    struct stat status;
    CHECK(stat("/proc/timer_list", &status) == 0 && S_ISCHR(status.st_mode));
    CHECK(access("/proc/bus/pci", F_OK) == -1);
    CHECK(flags_of("/proc/sys") & ST_RDONLY);
    DONE();
}

TEST(links_in_the_tree_do_not_lead_mounts_out_of_it)
{
    world_make();
    world_write("/home/marker", "of the container");
    CHECK(mkdir("/run/outside", 0755) == 0);
    CHECK(symlink("/../../../../run/outside", TREE_PATH "/home") == 0);
    CONFIGURE("bind=/home");
    enter_or_say();
    CHECK(world_holds("/run/outside/marker", "of the container"));
    CHECK(access("/proc/self/root/run/claim", F_OK) == -1);
    DONE();
}

TEST(a_source_that_is_missing_is_refused_and_named)
{
    static const char *const SOURCES[] = {"/opt/slurm", "/var/lib/extrausers"};

    for (size_t i = 0; i < sizeof(SOURCES) / sizeof(SOURCES[0]); i++) {
        pid_t child = fork();

        CHECK(child >= 0);
        if (child == 0) {
            world_make();
            CHECK(rmdir(SOURCES[i]) == 0);
            CONFIGURE("bind=/home");
            CHECK(enter() == -1);
            CHECK(failure.scope == FAILURE_NODE);
            CHECK_SAYS(failure.text, SOURCES[i]);
            CHECK_SAYS(failure.text, "No such file or directory");
            DONE();
        }
        CHECK(test_await(child) == 0);
    }
}

TEST(a_bind_that_is_missing_is_refused_and_named)
{
    world_make();
    CONFIGURE("bind=/home", "bind=/home/nothing");
    CHECK(enter() == -1);
    CHECK_SAYS(failure.text, "mount /home/nothing: No such file or directory");
}

TEST(a_bind_of_another_kind_than_its_place_is_refused)
{
    world_make();
    world_write(TREE_PATH "/home", "a file");
    CONFIGURE("bind=/home");
    CHECK(enter() == -1);
    CHECK_SAYS(failure.text, "/home");
}

TEST(a_jobs_mask_for_new_files_does_not_close_the_mount_points)
{
    struct stat status;

    world_make();
    umask(0777);
    CONFIGURE("bind=/home");
    enter_or_say();
    CHECK(stat("/proc", &status) == 0 && stat("/var/spool", &status) == 0 && (status.st_mode & 0777) == 0755);
    CHECK(umask(0022) == 0777);
    DONE();
}

static int enter_and_mount(void *unused)
{
    (void)unused;
    enter_or_say();
    CHECK(mount("inside", "/home/later", "tmpfs", 0, NULL) == 0);
    world_write("/home/later/marker", "inside");
    return 0;
}

TEST(what_is_mounted_in_a_view_is_not_seen_outside)
{
    world_make();
    CHECK(mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) == 0);
    CHECK(mkdir("/home/later", 0755) == 0);
    CONFIGURE("bind=/home");
    CHECK(test_in_child(enter_and_mount, NULL) == 0);
    CHECK(access("/home/later/marker", F_OK) == -1 && errno == ENOENT);
    CHECK(access(TREE_PATH "/proc/self", F_OK) == -1);
}

TEST(an_open_directory_outside_becomes_the_root_of_the_view)
{
    struct stat found, root;
    int outside;

    world_make();
    CONFIGURE("bind=/home");
    CHECK((outside = open("/run", O_RDONLY | O_DIRECTORY)) >= 0);
    enter_or_say();
    CHECK(fstat(outside, &found) == 0 && stat("/", &root) == 0);
    CHECK(found.st_dev == root.st_dev && found.st_ino == root.st_ino);
    CHECK(fcntl(outside, F_GETFD) & FD_CLOEXEC);
    CHECK(openat(outside, "../claim", O_PATH) == -1 && errno == ENOENT);
    DONE();
}

/* True if the old root, `root`, holds what was mounted there. */
static bool leads_to_mounts(int root)
{
    return faccessat(root, "run/claim", F_OK, 0) == 0 || faccessat(root, "opt/slurm", F_OK, 0) == 0 ||
           faccessat(root, "proc/self", F_OK, 0) == 0 || faccessat(root, "sys/kernel", F_OK, 0) == 0;
}

TEST(what_else_was_mounted_is_detached)
{
    int old, entered[2];
    pid_t beside = -1;
    char byte;

    world_make();
    CONFIGURE("bind=/home");
    CHECK(enter_namespace(&failure) == 0);
    CHECK((old = open("/", O_PATH | O_DIRECTORY)) >= 0 && leads_to_mounts(old));
    CHECK(pipe(entered) == 0 && (beside = fork()) >= 0);
    /* Another process in the namespace keeps what there must not be: a way to the old root. */
    if (beside == 0)
        _exit(read(entered[0], &byte, 1) == 1 && leads_to_mounts(old));
    if (enter_here() < 0)
        CHECK_SAYS(failure.text, "(no failure)");
    CHECK(write(entered[1], "", 1) == 1 && test_await(beside) == 0);
    DONE();
}

TEST(a_claim_mounted_read_only_serves_when_every_place_is_there)
{
    static const char *const PLACES[] = {"proc", "sys", "dev", "run", "opt", "opt/slurm", "var", "var/lib",
                                         "var/lib/extrausers", "var/spool", "var/spool/slurmd", "home"};
    char path[128];

    world_make();
    for (size_t i = 0; i < sizeof(PLACES) / sizeof(PLACES[0]); i++) {
        snprintf(path, sizeof(path), TREE_PATH "/%s", PLACES[i]);
        CHECK(mkdir(path, 0755) == 0);
    }
    world_write(TREE_PATH "/etc/hosts", "");
    world_write(TREE_PATH "/etc/resolv.conf", "");
    CHECK(symlink("trees/" TREE, CLAIM "/jobs/12") == 0);
    CHECK(mount(CLAIM, CLAIM, NULL, MS_BIND, NULL) == 0);
    CHECK(mount(NULL, CLAIM, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0);
    CONFIGURE("bind=/home");
    enter_or_say();
    CHECK(flags_of("/") & ST_RDONLY);
    DONE();
}

TEST(a_place_that_a_read_only_tree_lacks_is_named)
{
    world_make();
    CHECK(symlink("trees/" TREE, CLAIM "/jobs/12") == 0);
    CHECK(mount(CLAIM, CLAIM, NULL, MS_BIND, NULL) == 0);
    CHECK(mount(NULL, CLAIM, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0);
    CONFIGURE("bind=/home");
    CHECK(enter() == -1);
    CHECK_SAYS(failure.text, "/proc: Read-only file system");
}

/* A driver as a worker lays it out at its start; `cache` holds one library. */
static void make_driver(const char *cache, size_t size)
{
    FILE *file;

    CHECK(mkdir(JAIL_DRIVER, 0755) == 0 && mkdir(JAIL_DRIVER "/usr", 0755) == 0 && mkdir(JAIL_DRIVER "/etc", 0755) == 0);
    CHECK(mkdir(JAIL_DRIVER "/usr/local", 0755) == 0 && mkdir(JAIL_DRIVER "/usr/local/nvidia", 0755) == 0);
    world_write(JAIL_DRIVER "/usr/local/nvidia/tool", "#!/bin/sh\n");
    CHECK((file = fopen(JAIL_DRIVER "/etc/ld.so.cache", "w")) && fwrite(cache, 1, size, file) == size);
    CHECK(fclose(file) == 0);
}

#define EMPTY_CACHE "glibc-ld.so.cache1.1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" /* and a last zero */

TEST(a_driver_is_shown_read_only_and_its_programs_can_be_executed)
{
    world_make();
    make_driver(EMPTY_CACHE, sizeof(EMPTY_CACHE));
    CONFIGURE("bind=/home");
    enter_or_say();
    CHECK(world_holds("/usr/local/nvidia/tool", "#!/bin/sh"));
    CHECK((flags_of("/usr/local/nvidia") & (ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_RDONLY)) ==
          (ST_NOSUID | ST_NODEV | ST_RDONLY));
    CHECK(access("/usr/local/nvidia/etc", F_OK) == -1 && access("/run/slurm/driver", F_OK) == -1);
    CHECK(access("/etc/ld.so.cache", F_OK) == -1); /* a tree without one gets none */
    DONE();
}

TEST(a_bind_above_the_place_of_the_driver_does_not_hide_it)
{
    world_make();
    make_driver(EMPTY_CACHE, sizeof(EMPTY_CACHE));
    CHECK(mount("software", "/usr/local", "tmpfs", 0, NULL) == 0);
    world_write("/usr/local/software", "of the site");
    CONFIGURE("bind=/usr/local");
    enter_or_say();
    CHECK(world_holds("/usr/local/software", "of the site"));
    CHECK(world_holds("/usr/local/nvidia/tool", "#!/bin/sh"));
    DONE();
}

TEST(without_a_driver_a_view_has_no_place_for_one)
{
    world_make();
    world_write(TREE_PATH "/etc/ld.so.cache", "of the tree");
    CONFIGURE("bind=/home");
    enter_or_say();
    CHECK(access("/usr", F_OK) == -1 && access("/run/ld.so.cache", F_OK) == -1);
    CHECK(world_holds("/etc/ld.so.cache", "of the tree"));
    DONE();
}

TEST(a_library_cache_in_a_view_is_made_of_that_of_the_tree_which_stays_as_it_is)
{
    static const char CACHE[] = EMPTY_CACHE;
    FILE *file;

    world_make();
    make_driver(CACHE, sizeof(CACHE));
    CHECK((file = fopen(TREE_PATH "/etc/ld.so.cache", "w")) && fwrite(CACHE, 1, sizeof(CACHE), file) == sizeof(CACHE));
    CHECK(fclose(file) == 0 && chmod(TREE_PATH "/etc/ld.so.cache", 0644) == 0);
    CONFIGURE("bind=/home");
    enter_or_say();
    CHECK(world_holds("/etc/ld.so.cache", "glibc-ld.so.cache1.1") && (flags_of("/etc/ld.so.cache") & ST_RDONLY));
    CHECK(truncate("/etc/ld.so.cache", 0) == -1 && errno == EROFS);
    CHECK(umount2("/etc/ld.so.cache", MNT_DETACH) == 0 && world_holds("/etc/ld.so.cache", "glibc-ld.so.cache1.1"));
    DONE();
}

TEST(a_library_cache_that_is_not_understood_stays_as_it_is)
{
    world_make();
    make_driver(EMPTY_CACHE, sizeof(EMPTY_CACHE));
    world_write(TREE_PATH "/etc/ld.so.cache", "of another C library");
    CONFIGURE("bind=/home");
    enter_or_say();
    CHECK(world_holds("/etc/ld.so.cache", "of another C library"));
    DONE();
}

TEST(a_folder_in_place_of_a_library_cache_stays_as_it_is)
{
    struct stat status;

    world_make();
    make_driver(EMPTY_CACHE, sizeof(EMPTY_CACHE));
    CHECK(mkdir(TREE_PATH "/etc/ld.so.cache", 0755) == 0);
    CONFIGURE("bind=/home");
    enter_or_say();
    CHECK(stat("/etc/ld.so.cache", &status) == 0 && S_ISDIR(status.st_mode));
    DONE();
}

TEST(what_is_mounted_inside_of_a_mount_in_proc_is_there_too)
{
    world_make();
    CHECK(mount("driver", "/proc/bus", "tmpfs", 0, NULL) == 0); /* as the hook does at /proc/driver/nvidia */
    world_write("/proc/bus/params", "of the tmpfs");
    world_write("/run/params", "ModifyDeviceFiles: 0");
    CHECK(mount("/run/params", "/proc/bus/params", NULL, MS_BIND, NULL) == 0);
    CONFIGURE("bind=/home");
    enter_or_say();
    CHECK(world_holds("/proc/bus/params", "ModifyDeviceFiles: 0"));
    DONE();
}
