#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../found_image.h"
#include "../image_count.h"
#include "../image_import.h"
#include "harness.h"
#include "world.h"

static struct jail_config config;
static struct failure failure;
static char folder[PATH_MAX];
static char said[1024];

static void say(const char *line)
{
    strncat(said, line, sizeof(said) - strlen(said) - 2);
    strcat(said, ";");
}

static void make(const char *script)
{
    world_make_program(&config, IMPORTER, script);
    world_write("/run/claim/secret", "of the worker");
    CHECK(chmod("/run/claim/secret", 0644) == 0);
}

static char *wanted = "an image", *name = "", *began = "SLURM_JOB_START_TIME=1";

static int import_from(image_open_jail open_the_jail)
{
    char *const variables[] = {"https_proxy=http://proxy:1", began, NULL};
    static const struct person PERSON = {.user = USER_ID, .group = USER_ID, .name = "user", .home = "/home/user"};
    const struct image_import request = {.config = &config, .person = &PERSON, .image = wanted, .name = name, .name_flag = "auto",
                                         .directory = "/home/user",
                                         .job_id = 12, .variables = variables, .open_jail = open_the_jail, .job = &config, .say = say};

    return image_import(&request, folder, &failure);
}

static int import(void)
{
    return import_from(world_open_jail);
}

#define SCRIPT(...) "#!/bin/sh\n" __VA_ARGS__

TEST(the_importer_has_the_image_the_users_home_and_the_users_variables)
{
    make(SCRIPT("echo $1 \"$2\"; pwd; echo $HOME $https_proxy; id -u; echo image=/home/user/x\n"));
    CHECK(image_import_prepare() == 0);
    CHECK(import() == 0);
    CHECK(strcmp(folder, "/home/user/x") == 0);
    CHECK_SAYS(said, "12 an image;/home/user;/home/user http://proxy:1;4711;");
}

TEST(the_importer_has_the_name_of_a_container)
{
    make(SCRIPT("echo \"$2.$3.$4\"; exit 1\n"));
    CHECK(image_import_prepare() == 0);
    wanted = "";
    name = "tools";
    CHECK(import() == -1);
    CHECK_SAYS(failure.text, "container tools: .tools.auto");
}

static bool is_free(const char *path)
{
    int lock = open(path, O_RDWR | O_CLOEXEC);
    bool is = lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0;

    close(lock);
    return is;
}

/* In a process in slurmstepd's place. */
static int prepare_and_import(void *unused)
{
    (void)unused;
    return image_import_prepare() == 0 && import() == 0 && !is_free("/home/user/lock") ? 0 : 1;
}

TEST(a_lock_that_the_importer_leaves_is_held_until_slurmstepd_has_ended)
{
    static const char PROGRAM[] = "#!/usr/bin/python3 -IS\nimport fcntl, socket\nlock = open('/home/user/lock', 'w')\n"
                                  "fcntl.flock(lock, fcntl.LOCK_SH)\nstep = socket.socket(fileno=0)\n"
                                  "socket.send_fds(step, [b'lock'], [lock.fileno()])\nprint('image=/x')\n";

    make(PROGRAM);
    CHECK(test_in_child(prepare_and_import, NULL) == 0);
    CHECK(is_free("/home/user/lock"));
}

static void make_settings(void)
{
    CHECK(mkdir("/run/layers/etc", 0755) == 0 && mkdir("/run/layers/etc-work", 0755) == 0);
    CHECK(mount("layers", "/etc", "overlay", 0, "lowerdir=/etc,upperdir=/run/layers/etc,workdir=/run/layers/etc-work") == 0);
    CHECK(mkdir("/etc/soperator", 0755) == 0 && mkdir("/etc/soperator/health", 0755) == 0);
    world_write(IMPORTER_SETTINGS, "{}\n");
}

TEST(the_importer_has_the_settings_of_the_admin)
{
    make(SCRIPT("cat " IMPORTER_SETTINGS "; echo image=/x\n"));
    make_settings();
    CHECK(image_import_prepare() == 0);
    CHECK(import() == 0);
    CHECK_SAYS(said, "{};");
}

TEST(the_importer_reaches_nothing_of_the_worker_but_its_programs)
{
    make(SCRIPT("for path in /run/claim /var/spool /root /etc/shadow /opt /var/lib/dpkg; do test ! -e $path || echo $path;\n"
                "done; for path in /usr/lib/x /etc/x /x /run/x; do ! touch $path 2>/dev/null || echo $path; done;\n"
                "grep -E '^(Cap(Eff|Bnd|Prm)|NoNewPrivs|Seccomp):' /proc/self/status; echo image=/x\n"));
    CHECK(image_import_prepare() == 0);
    CHECK(import() == 0);
    CHECK_SAYS(said, "CapPrm:?0000000000000000;CapEff:?0000000000000000;CapBnd:?0000000000000000;NoNewPrivs:?1;Seccomp:?2;");
    CHECK(strncmp(said, "CapPrm", 6) == 0);
}

TEST(an_importer_that_fails_fails_the_job_with_its_last_words)
{
    make(SCRIPT("echo first; echo 'access denied' >&2; exit 3\n"));
    CHECK(image_import_prepare() == 0);
    CHECK(import() == -1);
    CHECK(failure.scope == FAILURE_JOB);
    CHECK_SAYS(failure.text, "image an image: access denied");
}

static int open_stale_jail(void *job, struct failure *why)
{
    (void)job;
    errno = ESTALE;
    return fail_volume(why, "open", CLAIM);
}

TEST(a_jail_that_cannot_be_opened_concerns_its_volume)
{
    make(SCRIPT("echo image=/x\n"));
    CHECK(image_import_prepare() == 0);
    CHECK(import_from(open_stale_jail) == -1);
    CHECK(failure.scope == FAILURE_VOLUME);
    CHECK_SAYS(failure.text, "open " CLAIM ": Stale file handle");
}

TEST(a_root_of_the_importer_that_cannot_be_made_concerns_the_job)
{
    make(SCRIPT("echo image=/x\n"));
    CHECK(symlink("pki", TREE_PATH "/etc/pki") == 0);
    CHECK(image_import_prepare() == 0);
    CHECK(import() == -1 && failure.scope == FAILURE_JOB);
    CHECK_SAYS(failure.text, "open in the jail /etc/pki");
}

TEST(an_importer_without_a_result_has_failed)
{
    make(SCRIPT("echo nothing\n"));
    CHECK(image_import_prepare() == 0);
    CHECK(import() == -1 && failure.scope == FAILURE_JOB);
}

TEST(words_of_the_importer_reach_the_terminal_without_control_characters)
{
    make(SCRIPT("printf 'a\\033[31mb\\302\\2332Jc \\303\\251\\n'; echo image=/x\n"));
    CHECK(image_import_prepare() == 0);
    CHECK(import() == 0);
    CHECK_SAYS(said, "a?[31mb??2Jc \303\251;");
}

static int import_and_end(void *unused)
{
    (void)unused;
    return import() == 0 && strcmp(folder, "/once") == 0 ? 0 : 1;
}

TEST(one_task_of_a_step_imports_for_all)
{
    make(SCRIPT("echo x >> /home/user/runs; echo image=/once\n"));
    CHECK(image_import_prepare() == 0);
    for (int i = 0; i < 3; i++)
        CHECK(test_in_child(import_and_end, NULL) == 0);
    CHECK(world_holds("/home/user/runs", "x\n") && !world_holds("/home/user/runs", "x\nx"));
}

/* What a start counts as, without its milliseconds. */
static bool counts_as(const char *script, const char *wanted_line)
{
    char line[80] = "";
    FILE *counts;

    make(script);
    CHECK(image_import_prepare() == 0);
    import();
    CHECK((counts = fopen(IMAGE_COUNTS, "r")) != NULL);
    CHECK(fgets(line, sizeof(line), counts) != NULL);
    fclose(counts);
    return strncmp(line, wanted_line, strlen(wanted_line)) == 0;
}

TEST(a_start_with_an_image_that_is_there_counts_as_present)
{
    CHECK(counts_as(SCRIPT("echo image=/x\n"), "present 0 "));
}

TEST(a_start_that_brings_its_image_counts_with_the_bytes_and_the_milliseconds)
{
    CHECK(counts_as(SCRIPT("sleep 0.2; echo brought=4096; echo image=/x\n"), "brought 4096 "));
    CHECK(!world_holds(IMAGE_COUNTS, "brought 4096 0\n"));
    CHECK(strstr(said, "brought") == NULL);
}

TEST(a_start_that_fails_counts_as_failed)
{
    CHECK(counts_as(SCRIPT("exit 1\n"), "failed 0 "));
}

TEST(an_importer_counts_no_more_bytes_than_its_time_allows)
{
    char line[80] = "";
    unsigned long long bytes, taken;
    FILE *counts;

    make(SCRIPT("echo brought=18446744073709551615; echo image=/x\n"));
    CHECK(image_import_prepare() == 0);
    CHECK(import() == 0);
    CHECK((counts = fopen(IMAGE_COUNTS, "r")) != NULL);
    CHECK(fgets(line, sizeof(line), counts) != NULL);
    fclose(counts);
    CHECK(sscanf(line, "brought %llu %llu", &bytes, &taken) == 2 && bytes == taken * 10000000);
}

TEST(a_file_of_counts_that_nothing_takes_stops_growing)
{
    struct stat status;

    make(SCRIPT("echo image=/x\n"));
    world_write(IMAGE_COUNTS, "");
    CHECK(truncate(IMAGE_COUNTS, 1024 * 1024) == 0);
    CHECK(image_import_prepare() == 0);
    CHECK(import() == 0);
    CHECK(stat(IMAGE_COUNTS, &status) == 0 && status.st_size == 1024 * 1024);
}

TEST(a_link_in_the_place_of_the_counts_is_not_followed)
{
    make(SCRIPT("echo image=/x\n"));
    CHECK(symlink("/run/elsewhere", IMAGE_COUNTS) == 0);
    CHECK(image_import_prepare() == 0);
    CHECK(import() == 0);
    CHECK(access("/run/elsewhere", F_OK) < 0 && errno == ENOENT);
}

/* An importer whose image later steps of the job may start. It counts its runs. */
#define FINDS "#!/bin/sh\necho x >> /home/user/runs; mkdir -p /home/user/x; : >> /home/user/lock\n" \
              "test ! -e /home/user/file || " \
              "stat -c 'version=%i %s %.9Y %n' /home/user/file | sed 's/[.]//'\n" \
              "echo lock=/home/user/lock; echo image=/home/user/x\n"

static int prepare_and_hold(void *unused)
{
    (void)unused;
    return image_import_prepare() == 0 && import() == 0 && strcmp(folder, "/home/user/x") == 0 &&
           !is_free("/home/user/lock") ? 0 : 1;
}

static int prepare_and_find(void *unused)
{
    (void)unused;
    return image_import_prepare() == 0 && import() == 0 && strcmp(folder, "/home/user/x") == 0 ? 0 : 1;
}

/* How often the importer runs for two steps of a job, between which something happens. */
static size_t runs_of_two_steps(void (*before)(void), void (*between)(void))
{
    struct stat runs;

    make(FINDS);
    before();
    CHECK(test_in_child(prepare_and_find, NULL) == 0);
    between();
    CHECK(test_in_child(prepare_and_find, NULL) == 0);
    CHECK(stat("/home/user/runs", &runs) == 0);
    return (size_t)runs.st_size / strlen("x\n");
}

static void do_nothing(void)
{
}

TEST(a_later_step_of_a_job_starts_the_same_image_without_the_importer)
{
    CHECK(runs_of_two_steps(do_nothing, do_nothing) == 1);
}

TEST(what_a_later_step_starts_is_held_until_its_slurmstepd_has_ended)
{
    make(FINDS);
    CHECK(test_in_child(prepare_and_find, NULL) == 0);
    CHECK(test_in_child(prepare_and_hold, NULL) == 0);
    CHECK(is_free("/home/user/lock"));
}

static int noted[2]; /* from what holds the image, if it outlives its task */

static int open_jail_after_the_task(void *job, struct failure *jail_failure)
{
    const pid_t task = getppid();

    kill(task, SIGKILL);
    while (getppid() == task)
        sched_yield();
    poll(NULL, 0, 2000); /* in which it has to be killed as well */
    CHECK(write(noted[1], "", 1) == 1);
    return world_open_jail(job, jail_failure);
}

static int prepare_and_be_killed(void *unused)
{
    (void)unused;
    close(noted[0]);
    return image_import_prepare() == 0 && import_from(open_jail_after_the_task) == 0 ? 0 : 1;
}

TEST(what_holds_an_image_for_a_task_ends_with_the_task)
{
    char byte;

    make(FINDS);
    CHECK(test_in_child(prepare_and_find, NULL) == 0);
    CHECK(pipe2(noted, O_CLOEXEC) == 0);
    CHECK(test_in_child(prepare_and_be_killed, NULL) == 128 + SIGKILL);
    close(noted[1]);
    CHECK(read(noted[0], &byte, 1) == 0);
}

static void remove_image(void)
{
    CHECK(rmdir("/home/user/x") == 0);
}

TEST(an_image_that_is_gone_needs_the_importer)
{
    CHECK(runs_of_two_steps(do_nothing, remove_image) == 2);
}

static void hold_alone(void)
{
    int lock = open("/home/user/lock", O_RDWR | O_CLOEXEC);

    CHECK(lock >= 0 && flock(lock, LOCK_EX) == 0);
}

TEST(an_image_that_is_being_removed_needs_the_importer)
{
    CHECK(runs_of_two_steps(do_nothing, hold_alone) == 2);
}

static void lead_elsewhere(void)
{
    CHECK(rename("/home/user/lock", "/home/user/other") == 0 && symlink("other", "/home/user/lock") == 0);
}

TEST(a_link_in_the_place_of_a_lock_needs_the_importer)
{
    CHECK(runs_of_two_steps(do_nothing, lead_elsewhere) == 2);
}

static void requeue(void)
{
    began = "SLURM_JOB_START_TIME=2";
}

TEST(another_run_of_a_job_needs_the_importer)
{
    CHECK(runs_of_two_steps(do_nothing, requeue) == 2);
}

static void want_another(void)
{
    wanted = "another image";
}

TEST(another_image_of_a_job_needs_the_importer)
{
    CHECK(runs_of_two_steps(do_nothing, want_another) == 2);
}

static void want_name(void)
{
    name = "tools";
}

TEST(a_named_container_needs_the_importer)
{
    CHECK(runs_of_two_steps(do_nothing, want_name) == 2);
}

static void end_job(void)
{
    found_image_forget(12);
}

TEST(images_of_a_job_that_has_ended_are_forgotten)
{
    CHECK(runs_of_two_steps(do_nothing, end_job) == 2);
    CHECK(access(FOUND_IMAGES "/12", F_OK) == 0);
}

static void change_settings(void)
{
    world_write(IMPORTER_SETTINGS, "{}\n");
}

TEST(other_settings_of_the_admin_need_the_importer)
{
    CHECK(runs_of_two_steps(make_settings, change_settings) == 2);
}

static void write_again(void)
{
    world_write("/home/user/file", "another image");
}

static void want_file(void)
{
    world_write("/home/user/file", "image");
    wanted = "./file";
}

TEST(an_image_in_a_file_that_has_not_changed_needs_no_importer)
{
    CHECK(runs_of_two_steps(want_file, do_nothing) == 1);
}

TEST(an_image_in_a_file_that_has_changed_needs_the_importer)
{
    CHECK(runs_of_two_steps(want_file, write_again) == 2);
}

static void close_file(void)
{
    CHECK(chmod("/home/user/file", 0) == 0);
}

TEST(an_image_in_a_file_that_its_user_may_no_longer_read_needs_the_importer)
{
    CHECK(runs_of_two_steps(want_file, close_file) == 2);
}

static void relink(void)
{
    world_write("/home/user/new", "image");
    CHECK(rename("/home/user/file", "/home/user/old") == 0 && symlink("new", "/home/user/file") == 0);
}

TEST(a_link_that_leads_to_another_file_needs_the_importer)
{
    CHECK(runs_of_two_steps(want_file, relink) == 2);
}

TEST(words_that_would_be_two_lines_are_not_noted)
{
    struct found_image found = {.folder = "/home/user/x", .lock = "/home/user/lock\n"};

    found_image_note(12, "words", &found);
    CHECK(!found_image_read(12, "words", &found));
}

TEST(what_is_noted_of_a_job_stays_small)
{
    const struct found_image found = {.folder = "/home/user/x", .lock = "/home/user/lock"};
    char words[32];
    struct stat status;

    CHECK(mkdir("/run/slurm", 0755) == 0 || errno == EEXIST);
    for (int i = 0; i < 1000; i++) {
        snprintf(words, sizeof(words), "image %d", i);
        found_image_note(12, words, &found);
    }
    CHECK(stat(FOUND_IMAGES "/12", &status) == 0 && status.st_size > 4096 && status.st_size <= 8192);
}
