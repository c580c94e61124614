#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../pmix.h"
#include "harness.h"
#include "world.h"

#define SPOOL "/var/spool/slurmd"

static struct failure failure;

static void listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    CHECK(server >= 0 && bind(server, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(server, 1) == 0);
}

static void is_named(const char *expected)
{
    char name[PMIX_NAME_SIZE];

    CHECK(pmix_folder(SPOOL, 12, 3, name, &failure) == 0);
    CHECK_SAYS(name, expected);
    CHECK(strlen(name) == strlen(expected));
}

TEST(a_step_without_a_server_has_the_folder_of_its_own_numbers)
{
    world_make();
    is_named("pmix.12.3");
}

TEST(a_component_has_the_folder_that_the_server_of_its_job_has)
{
    world_make();
    listen_at(SPOOL "/stepd.slurm.pmix.11.3");
    is_named("pmix.11.3");
}

TEST(a_socket_of_something_else_names_no_folder)
{
    world_make();
    CHECK(mkdir("/run/spool", 0755) == 0);
    listen_at(SPOOL "/cpu-0_11.3");
    listen_at("/run/spool/stepd.slurm.pmix.11.3");
    listen_at(SPOOL "/stepd.slurm.pmix.11.3.x");
    listen_at(SPOOL "/stepd.slurm.pmix.11");
    is_named("pmix.12.3");
}
