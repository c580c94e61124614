#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../mountinfo.h"
#include "harness.h"
#include "world.h"

static char seen[1024];

static int see(const struct mountinfo_line *line, void *stop)
{
    size_t length = strlen(seen);

    snprintf(seen + length, sizeof(seen) - length, "[%u|%s|%s]", line->id, line->root, line->point);
    return stop && strcmp(line->point, stop) == 0 ? 5 : 0;
}

TEST(lines_are_told_apart)
{
    world_make();
    world_write("/run/info", "21 1 8:1 / / rw - ext4 /dev/sda rw\n"
                             "22 21 0:5 /a\\040b /mnt/c\\134d\\011 rw shared:1 - tmpfs x rw\n");
    CHECK(mountinfo_each("/run/info", see, NULL) == 0);
    CHECK(strcmp(seen, "[21|/|/][22|/a b|/mnt/c\\d\t]") == 0);
}

TEST(reading_ends_when_enough_is_seen)
{
    world_make();
    world_write("/run/info", "1 1 0:1 / /a rw\n2 1 0:1 / /b rw\n");
    CHECK(mountinfo_each("/run/info", see, (void *)"/a") == 5);
    CHECK(strcmp(seen, "[1|/|/a]") == 0);
}

TEST(a_line_that_is_not_understood_is_a_failure)
{
    static const char *const LINES[] = {
        "\n", "1 2\n", "1 1 0:1 / /a\n", "x 1 0:1 / /a rw\n", "1 -1 0:1 / /a rw\n", "1 99999999999 0:1 / /a rw\n",
        "1 1 0:1 / a rw\n",
    };

    world_make();
    for (size_t i = 0; i < sizeof(LINES) / sizeof(LINES[0]); i++) {
        world_write("/run/info", LINES[i]);
        CHECK(mountinfo_each("/run/info", see, NULL) == -1 && errno == EBADMSG);
    }
    CHECK(seen[0] == '\0');
}

TEST(what_only_looks_escaped_stays)
{
    world_make();
    world_write("/run/info", "1 1 0:1 / /a\\04\\9 rw\n");
    CHECK(mountinfo_each("/run/info", see, NULL) == 0);
    CHECK(strcmp(seen, "[1|/|/a\\04\\9]") == 0);
}

TEST(a_file_that_is_missing_is_an_error)
{
    CHECK(mountinfo_each("/nothing", see, NULL) == -1 && errno == ENOENT);
}
