#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static unsigned int state;
static time_t end;

void fuzz_begin(int count, char *arguments[])
{
    if (count != 3)
        exit(64);
    end = time(NULL) + atoi(arguments[1]);
    state = (unsigned int)strtoul(arguments[2], NULL, 10);
}

int fuzz_goes_on(void)
{
    return time(NULL) <= end;
}

unsigned int fuzz_pick(unsigned int below)
{
    state = state * 1664525u + 1013904223u; /* Numerical Recipes' generator */
    return (unsigned int)(((unsigned long long)(state >> 8) * below) >> 24);
}

static void insert(char *line, size_t size, const char *piece, size_t at)
{
    size_t length = strlen(line), added = strlen(piece);

    if (length + added >= size)
        return;
    memmove(line + at + added, line + at, length - at + 1);
    memcpy(line + at, piece, added);
}

void fuzz_mutate(char *line, size_t size, const char *const *pieces, size_t piece_count)
{
    size_t length = strlen(line), at = fuzz_pick((unsigned int)length + 1);

    switch (fuzz_pick(5)) {
    case 0:
        insert(line, size, pieces[fuzz_pick((unsigned int)piece_count)], at);
        break;
    case 1:
        if (at < length)
            line[at] = (char)(1 + fuzz_pick(255));
        break;
    case 2:
        if (at < length) {
            size_t cut = 1 + fuzz_pick((unsigned int)(length - at));

            memmove(line + at, line + at + cut, length - at - cut + 1);
        }
        break;
    case 3: { /* repeat a part, which makes lines long */
        char *copy = strdup(line + at);

        if (copy)
            insert(line, size, copy, fuzz_pick((unsigned int)length + 1));
        free(copy);
        break;
    }
    default:
        line[at] = '\0';
    }
}

void fuzz_promise(int kept, const char *what, const char *line)
{
    if (kept)
        return;
    fprintf(stderr, "broken promise: %s\nline: %s\n", what, line);
    abort();
}
