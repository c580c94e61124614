#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../config.h"
#include "harness.h"
#include "world.h"

static struct jail_config config;
static struct failure failure;

#define PARSE(...)                                                                                                     \
    config_parse(&config, (int)(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)), (char *[]){__VA_ARGS__}, &failure)

#define REFUSED(says, ...)                                                                                             \
    do {                                                                                                               \
        CHECK(PARSE(__VA_ARGS__) == -1);                                                                               \
        CHECK(failure.scope == FAILURE_NODE);                                                                          \
        CHECK_SAYS(failure.text, "configuration: ");                                                                   \
        CHECK_SAYS(failure.text, says);                                                                                \
    } while (0)

TEST(a_whole_line_is_understood)
{
    CHECK(PARSE((char *)"jail=/jail", (char *)"bind=/home", (char *)"bind=/data:ro", (char *)"isolation=pid,ipc",
                (char *)"user_namespaces", (char *)"spool=/spool") == 0);
    CHECK(strcmp(config.jail, "/jail") == 0);
    CHECK(strcmp(config.spool, "/spool") == 0);
    CHECK(config.bind_count == 2);
    CHECK(strcmp(config.binds[0].path, "/data") == 0 && config.binds[0].read_only);
    CHECK(strcmp(config.binds[1].path, "/home") == 0 && !config.binds[1].read_only);
    CHECK(config.isolate_pid && config.isolate_ipc && config.user_namespaces);
}

TEST(nothing_is_open_by_default)
{
    CHECK(PARSE((char *)"jail=/jail") == 0);
    CHECK(strcmp(config.spool, "/var/spool/slurmd") == 0);
    CHECK(config.bind_count == 0);
    CHECK(!config.isolate_pid && !config.isolate_ipc && !config.user_namespaces);
}

TEST(a_jail_has_to_be_named)
{
    REFUSED("jail=PATH is missing", (char *)"bind=/home");
    CHECK(config_parse(&config, 0, NULL, &failure) == -1);
}

TEST(unknown_words_are_refused)
{
    REFUSED("unknown argument \"user_namespace\"", (char *)"jail=/jail", (char *)"user_namespace");
    REFUSED("unknown argument \"\"", (char *)"jail=/jail", (char *)"");
    REFUSED("isolation=...net", (char *)"jail=/jail", (char *)"isolation=pid,net");
    REFUSED("isolation=", (char *)"jail=/jail", (char *)"isolation=");
    REFUSED("isolation=", (char *)"jail=/jail", (char *)"isolation=pid,");
}

TEST(paths_that_are_not_plain_are_refused)
{
    static const char *const PATHS[] = {"",       "/",     "home",  "./home", "/home/",   "//home", "/home//a",
                                        "/a/../b", "/..",   "/a/.",  "/a b",   "/a\tb",    "/a:rw",  "/a:b",
                                        "/a:",    "/\x7f", "/a\n",  ":ro",    "/a:ro:ro", "/../ro"};

    for (size_t i = 0; i < sizeof(PATHS) / sizeof(PATHS[0]); i++) {
        char argument[64];

        snprintf(argument, sizeof(argument), "bind=%s", PATHS[i]);
        REFUSED("bind=", (char *)"jail=/jail", argument);
    }
    REFUSED("jail=", (char *)"jail=/");
    REFUSED("spool=", (char *)"jail=/jail", (char *)"spool=spool");
}

TEST(names_with_dots_are_plain)
{
    CHECK(PARSE((char *)"jail=/jail", (char *)"bind=/.a", (char *)"bind=/..b", (char *)"bind=/c...") == 0);
}

TEST(a_bind_never_hides_what_the_jail_has_from_elsewhere)
{
    static const char *const PATHS[] = {"/proc", "/proc/sys",  "/sys",     "/sys/fs",    "/dev",           "/run",
                                        "/etc",  "/etc/hosts", "/opt",     "/opt/slurm", "/opt/slurm/bin", "/run/munge",
                                        "/var",  "/var/lib",   "/var/spool", "/var/spool/slurmd", "/jail", "/jail/trees",
                                        "/var/spool/slurmd/job00001"};

    for (size_t i = 0; i < sizeof(PATHS) / sizeof(PATHS[0]); i++) {
        char argument[64];

        snprintf(argument, sizeof(argument), "bind=%s", PATHS[i]);
        REFUSED(argument, (char *)"jail=/jail", argument);
    }
}

TEST(a_bind_may_lie_beside_or_in_open_places)
{
    CHECK(PARSE((char *)"jail=/jail", (char *)"bind=/dev/shm", (char *)"bind=/opt/slurm-addons", (char *)"bind=/jails",
                (char *)"bind=/run/user", (char *)"bind=/etc/pki", (char *)"bind=/processes") == 0);
}

TEST(a_bind_is_given_once)
{
    REFUSED("given twice", (char *)"jail=/jail", (char *)"bind=/home", (char *)"bind=/home:ro");
}

TEST(what_holds_another_bind_comes_before_it)
{
    CHECK(PARSE((char *)"jail=/jail", (char *)"bind=/data/a/b", (char *)"bind=/data-old", (char *)"bind=/data") == 0);
    CHECK(strcmp(config.binds[0].path, "/data") == 0);
    CHECK(strcmp(config.binds[2].path, "/data/a/b") == 0);
}

TEST(a_claim_in_the_spool_is_refused)
{
    REFUSED("lie in each other", (char *)"jail=/var/spool/slurmd/jail");
    REFUSED("lie in each other", (char *)"jail=/var");
}

TEST(paths_and_lines_have_a_limit)
{
    char path[JAIL_PATH_SIZE + 16] = "bind=/";
    char *arguments[JAIL_MAX_BINDS + 2] = {(char *)"jail=/jail"};
    static char binds[JAIL_MAX_BINDS + 1][32];

    memset(path + 6, 'a', JAIL_PATH_SIZE);
    REFUSED("longer than 511 bytes", (char *)"jail=/jail", path);
    path[5 + JAIL_PATH_SIZE - 1] = '\0';
    CHECK(PARSE((char *)"jail=/jail", path) == 0);
    REFUSED("may have cut the line", (char *)"jail=/jail", path, path, path, path, path, path, path, path);

    for (int i = 0; i <= JAIL_MAX_BINDS; i++) {
        snprintf(binds[i], sizeof(binds[i]), "bind=/d/%d", i);
        arguments[i + 1] = binds[i];
    }
    CHECK(config_parse(&config, JAIL_MAX_BINDS + 1, arguments, &failure) == 0);
    CHECK(config_parse(&config, JAIL_MAX_BINDS + 2, arguments, &failure) == -1);
    CHECK_SAYS(failure.text, "more than 128 binds");
}

TEST(an_endless_argument_makes_a_short_message)
{
    static char argument[3800];

    memset(argument, 'x', sizeof(argument) - 1);
    REFUSED("unknown argument", (char *)"jail=/jail", argument);
    CHECK(strlen(failure.text) < 300);
}

#define BINDS "/run/jail-binds"
#define LOAD(...)                                                                                                      \
    config_load(&config, (int)(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)), (char *[]){__VA_ARGS__}, &failure)

static void file_is_refused(const char *says)
{
    CHECK(LOAD((char *)"jail=/jail", (char *)"binds=" BINDS) == -1);
    CHECK(failure.scope == FAILURE_NODE);
    CHECK_SAYS(failure.text, says);
    CHECK_SAYS(failure.text, BINDS);
}

TEST(a_pods_own_binds_are_added)
{
    world_make();
    world_write(BINDS, "bind=/data:ro\nbind=/dev/shm\nbind=/tmp");
    CHECK(LOAD((char *)"jail=/jail", (char *)"binds=" BINDS, (char *)"bind=/home") == 0);
    CHECK(config.bind_count == 4);
    CHECK(strcmp(config.binds[0].path, "/data") == 0 && config.binds[0].read_only);
    CHECK(strcmp(config.binds[2].path, "/home") == 0);
    CHECK(strcmp(config.binds[3].path, "/tmp") == 0 && !config.binds[3].read_only);
}

TEST(a_pod_may_have_no_binds_of_its_own)
{
    world_make();
    world_write(BINDS, "");
    CHECK(LOAD((char *)"jail=/jail", (char *)"binds=" BINDS) == 0);
    CHECK(config.bind_count == 0);
    CHECK(LOAD((char *)"jail=/jail") == 0);
}

TEST(a_file_of_binds_that_is_missing_is_refused)
{
    world_make();
    file_is_refused("open /run/jail-binds: No such file or directory");
}

TEST(a_file_of_binds_that_others_may_write_is_refused)
{
    world_make();
    world_write(BINDS, "bind=/data\n");
    CHECK(chmod(BINDS, 0666) == 0);
    file_is_refused("must be a file of root");
    CHECK(chmod(BINDS, 0644) == 0 && chown(BINDS, USER_ID, 0) == 0);
    file_is_refused("must be a file of root");
    CHECK(unlink(BINDS) == 0 && symlink("/etc/hosts", BINDS) == 0);
    file_is_refused("symbolic links");
    CHECK(unlink(BINDS) == 0 && mkdir(BINDS, 0755) == 0);
    file_is_refused("must be a file of root");
    CHECK(rmdir(BINDS) == 0 && mkfifo(BINDS, 0644) == 0);
    file_is_refused("must be a file of root");
}

TEST(lines_that_are_no_binds_are_refused)
{
    static const char *const LINES[] = {"\n", "bind", "/data\n", "jail=/other\n", " bind=/data\n", "#\n", "bind=/data\n\n"};

    world_make();
    for (size_t i = 0; i < sizeof(LINES) / sizeof(LINES[0]); i++) {
        world_write(BINDS, LINES[i]);
        file_is_refused("known are bind=PATH[:ro] and containers=MIB");
    }
}

TEST(a_pods_binds_keep_the_rules_of_all)
{
    world_make();
    world_write(BINDS, "bind=/opt/slurm\n");
    CHECK(LOAD((char *)"jail=/jail", (char *)"binds=" BINDS) == -1);
    CHECK_SAYS(failure.text, "bind=/opt/slurm would hide");
    world_write(BINDS, "bind=/home\n");
    CHECK(LOAD((char *)"jail=/jail", (char *)"binds=" BINDS, (char *)"bind=/home") == -1);
    CHECK_SAYS(failure.text, "given twice");
    world_write(BINDS, "bind=/a b\n");
    CHECK(LOAD((char *)"jail=/jail", (char *)"binds=" BINDS) == -1);
}
