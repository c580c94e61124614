#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double now_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void print_result(const char *check, double gigabytes_per_second, uint64_t errors)
{
	printf("{\"bench\": \"%s\", \"value\": %.6g, \"errors\": %llu}\n", check, gigabytes_per_second,
	       (unsigned long long)errors);
	fflush(stdout);
}

_Noreturn void fail(const char *what, const char *subject)
{
	fprintf(stderr, "node-bench: %s: %s%s%s\n", what, subject, errno ? ": " : "", errno ? strerror(errno) : "");
	exit(NO_RESULT);
}
