#define _GNU_SOURCE
#include "bench.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 4 * 1024 * 1024, WORDS = BLOCK / sizeof(uint64_t) };

static uint64_t word(size_t block, size_t index)
{
	return (block * WORDS + index) * 0x9E3779B97F4A7C15u + 1;
}

static double write_blocks(int file, uint64_t *buffer, size_t blocks)
{
	double began = now_seconds();
	for (size_t block = 0; block < blocks; block++) {
		for (size_t at = 0; at < WORDS; at++)
			buffer[at] = word(block, at);
		for (size_t done = 0; done < BLOCK;) {
			ssize_t part = write(file, (char *)buffer + done, BLOCK - done);
			if (part <= 0)
				fail("storage", "write");
			done += (size_t)part;
		}
	}
	if (fsync(file))
		fail("storage", "fsync");
	return now_seconds() - began;
}

static double read_blocks(int file, uint64_t *buffer, size_t blocks, uint64_t *errors)
{
	double began = now_seconds();
	for (size_t block = 0; block < blocks; block++) {
		for (size_t done = 0; done < BLOCK;) {
			ssize_t part = pread(file, (char *)buffer + done, BLOCK - done, (off_t)(block * BLOCK + done));
			if (part <= 0)
				fail("storage", "read");
			done += (size_t)part;
		}
		for (size_t at = 0; at < WORDS; at++)
			*errors += buffer[at] != word(block, at);
	}
	return now_seconds() - began;
}

int measure_storage(const char *directory, size_t mebibytes)
{
	size_t blocks = mebibytes * 1024 * 1024 / BLOCK;
	uint64_t *buffer = NULL, errors = 0;
	char path[4096];
	snprintf(path, sizeof(path), "%s/.node-bench.XXXXXX", directory);
	int file = mkstemp(path);
	if (file < 0)
		fail("storage", directory);
	unlink(path); // gone whatever ends the program
	if (!blocks || posix_memalign((void **)&buffer, 4096, BLOCK))
		fail("storage", "no memory");
	double writing = write_blocks(file, buffer, blocks);
	// Pages of the file leave this node's memory, so that they are read from the storage.
	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	double reading = read_blocks(file, buffer, blocks, &errors), longer = writing > reading ? writing : reading;
	print_result("storage", (double)blocks * BLOCK / longer / 1e9, errors);
	free(buffer);
	close(file);
	return MEASURED;
}
