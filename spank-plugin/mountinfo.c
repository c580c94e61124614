#include "mountinfo.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Undo, in place, how the kernel writes blanks and backslashes: \040, \011, \012, \134. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from; to++) {
        if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

static int take_number(const char *text, unsigned int *number)
{
    unsigned long value;

    if (text[0] == '\0' || text[strspn(text, "0123456789")] != '\0' || (value = strtoul(text, NULL, 10)) > UINT_MAX)
        return -1;
    *number = (unsigned int)value;
    return 0;
}

/* A line is: id, parent's id, device, root, mount point, options, ... with blanks between. */
static int parse(char *text, struct mountinfo_line *line)
{
    char *rest = NULL;
    char *field[6];

    for (size_t i = 0; i < 6; i++)
        if (!(field[i] = strtok_r(i == 0 ? text : NULL, " \n", &rest)))
            return -1;
    if (take_number(field[0], &line->id) < 0 || take_number(field[1], &line->parent) < 0 || field[4][0] != '/')
        return -1;
    unescape(field[3]);
    unescape(field[4]);
    line->root = field[3];
    line->point = field[4];
    return 0;
}

int mountinfo_each(const char *path, int (*see)(const struct mountinfo_line *line, void *context), void *context)
{
    struct mountinfo_line line;
    char *text = NULL;
    size_t size = 0;
    int result = 0, failed, saved;
    FILE *file = fopen(path, "re");

    if (!file)
        return -1;
    while (result == 0 && getline(&text, &size, file) >= 0) {
        if (parse(text, &line) < 0) {
            errno = EBADMSG;
            result = -1;
        } else {
            result = see(&line, context);
        }
    }
    saved = errno;
    failed = ferror(file);
    free(text);
    fclose(file);
    errno = saved;
    return failed ? -1 : result;
}
