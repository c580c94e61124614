#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int usage(void)
{
	fputs("node-bench ring NAME=ADDRESS,... PORT MIB SECONDS\n"
	      "node-bench memory MIB SECONDS\n"
	      "node-bench storage DIRECTORY MIB\n",
	      stderr);
	return USAGE;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "ring") && argc == 6)
		return measure_ring(argv[2], atoi(argv[3]), strtoul(argv[4], NULL, 10), atof(argv[5]));
	if (!strcmp(what, "memory") && argc == 4)
		return measure_memory(strtoul(argv[2], NULL, 10), atof(argv[3]));
	if (!strcmp(what, "storage") && argc == 4)
		return measure_storage(argv[2], strtoul(argv[3], NULL, 10));
	return usage();
}
