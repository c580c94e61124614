/*
 * Fuzzing of the count of a list of hosts: of a list that is made up here, it is never smaller than the number of its
 * hosts. Mutated, the list has any bytes.
 *
 *   fuzz_hostlists SECONDS SEED
 */
#include "../bounded_hostlists.c"

#include <stdio.h>

#include "../../../spank-plugin/tests/fuzz.h"

#define LINE_SIZE 4096

static const char *const PIECES[] = {
    "[", "]", "[]", ",", "-", "0", "9", "[0-9]", "[0-9999]", "18446744073709551615", "+", " ", "\t", "x", "\xff", "[[", "][",
};

static char line[LINE_SIZE];

static void put(const char *text)
{
    strncat(line, text, sizeof(line) - strlen(line) - 1);
}

/* Ranges between brackets, or nothing. Returns how many names they make of one. */
static uint64_t put_ranges(void)
{
    uint64_t sum = 0;

    if (fuzz_pick(3) == 0)
        return 1;
    put("[");
    for (unsigned int i = fuzz_pick(4) + 1; i; i--) {
        unsigned int low = fuzz_pick(100), more = fuzz_pick(3) ? fuzz_pick(20000) : 0;
        char number[16];

        snprintf(number, sizeof(number), "%0*u", (int)fuzz_pick(4), low);
        put(number);
        snprintf(number, sizeof(number), "-%u", low + more);
        put(more ? number : "");
        put(i > 1 ? "," : "");
        sum += 1 + more;
    }
    put("]");
    return sum;
}

static uint64_t put_list(void)
{
    uint64_t sum = 0;

    line[0] = '\0';
    for (unsigned int names = fuzz_pick(4) + 1; names; names--) {
        uint64_t product = 1;

        put("n");
        for (unsigned int brackets = fuzz_pick(3); brackets; brackets--) {
            product *= put_ranges();
            put(fuzz_pick(2) ? "-" : "");
        }
        sum += product;
        if (names > 1)
            put(fuzz_pick(4) ? "," : " ");
    }
    return sum;
}

/* Counts a copy of the exact size, so that the sanitizer sees a byte too many. */
static uint64_t count_of_copy(void)
{
    char *copy = strdup(line);
    uint64_t count = copy ? hosts_of(copy) : MANY;

    free(copy);
    return count;
}

int main(int count, char *arguments[])
{
    unsigned long runs = 0;

    fuzz_begin(count, arguments);
    while (fuzz_goes_on()) {
        uint64_t hosts = put_list();

        fuzz_promise(count_of_copy() >= at_most_many(hosts), "a list has no more hosts than are counted", line);
        for (int i = 0; i < 8; i++) {
            fuzz_mutate(line, sizeof(line), PIECES, FUZZ_LENGTH(PIECES));
            fuzz_promise(count_of_copy() <= MANY, "a count has a bound", line);
        }
        runs++;
    }
    printf("%lu lists, seed %s\n", runs, arguments[2]);
    return runs == 0;
}
