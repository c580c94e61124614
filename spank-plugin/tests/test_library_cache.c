#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../library_cache.h"
#include "harness.h"

#define X86_64 0x0303
#define ENTRIES 48 /* where they begin */
#define ENTRY_BYTES 24
#define ROOM 4096

/* A cache as ldconfig writes it: entries, strings, and with `named` an extension with one name of hardware. */
struct made {
    char bytes[ROOM];
    size_t size;
};

static void put32(struct made *cache, size_t at, uint32_t value)
{
    memcpy(cache->bytes + at, &value, sizeof(value));
}

static uint32_t add_text(struct made *cache, const char *text)
{
    uint32_t at = (uint32_t)cache->size;

    strcpy(cache->bytes + at, text);
    cache->size += strlen(text) + 1;
    return at;
}

/* `libraries` are name, path, ..., NULL, in the order of a cache. */
static void make(struct made *cache, const char *const libraries[], const char *named)
{
    uint32_t count = 0;

    memset(cache, 0, sizeof(*cache));
    memcpy(cache->bytes, "glibc-ld.so.cache1.1", 20);
    cache->bytes[28] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 2 : 3;
    while (libraries[2 * count])
        count++;
    put32(cache, 20, count);
    cache->size = ENTRIES + count * ENTRY_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        put32(cache, ENTRIES + i * ENTRY_BYTES, X86_64);
        put32(cache, ENTRIES + i * ENTRY_BYTES + 4, add_text(cache, libraries[2 * i]));
        put32(cache, ENTRIES + i * ENTRY_BYTES + 8, add_text(cache, libraries[2 * i + 1]));
    }
    if (named) {
        uint32_t name = add_text(cache, named), at = (uint32_t)((cache->size + 3) & ~(size_t)3);

        put32(cache, 32, at);
        put32(cache, at, 0xeaa42174u);
        put32(cache, at + 4, 1);
        put32(cache, at + 8, 1); /* a section of names */
        put32(cache, at + 16, at + 24);
        put32(cache, at + 20, 4);
        put32(cache, at + 24, name);
        cache->size = at + 28;
    }
}

static struct library_cache merge(const struct made *jail, const struct made *driver)
{
    const struct library_cache first = {(char *)jail->bytes, jail->size}, second = {(char *)driver->bytes, driver->size};
    struct library_cache merged;

    CHECK(library_cache_merge(&first, &second, &merged) == 0);
    return merged;
}

static uint32_t get32(const struct library_cache *cache, size_t at)
{
    uint32_t value;

    CHECK(at + sizeof(value) <= cache->size);
    memcpy(&value, cache->bytes + at, sizeof(value));
    return value;
}

/* "name=path name=path ..." in the order of the cache; freed with it by the end of the test's process. */
static const char *listed(const struct library_cache *cache)
{
    static char text[ROOM];

    text[0] = '\0';
    for (uint32_t i = 0; i < get32(cache, 20); i++) {
        size_t entry = ENTRIES + i * ENTRY_BYTES;

        CHECK(get32(cache, entry) == X86_64);
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s=%s", i ? " " : "",
                 cache->bytes + get32(cache, entry + 4), cache->bytes + get32(cache, entry + 8));
    }
    return text;
}

static const char *const DRIVER[] = {"libnvidia-ml.so.1", "/driver/libnvidia-ml.so.1", "libcuda.so.1",
                                     "/driver/libcuda.so.1", NULL};

TEST(libraries_of_both_are_in_the_order_that_the_loader_searches)
{
    static const char *const LIBRARIES[] = {"libz.so.10", "/z10", "libz.so.9", "/z9", "libnvidia1.so.1",
                                            "/n1", "libm.so.6", "/m", "libc.so.6", "/c", "ld-linux.so.2", "/ld", NULL};
    struct made jail, driver;
    struct library_cache merged;

    make(&jail, LIBRARIES, NULL);
    make(&driver, DRIVER, NULL);
    merged = merge(&jail, &driver);
    CHECK(strcmp(listed(&merged), "libz.so.10=/z10 libz.so.9=/z9 libnvidia1.so.1=/n1 "
                                  "libnvidia-ml.so.1=/driver/libnvidia-ml.so.1 libm.so.6=/m libcuda.so.1=/driver/libcuda.so.1 libc.so.6=/c ld-linux.so.2=/ld") == 0);
    free(merged.bytes);
}

TEST(a_library_that_both_have_is_that_of_the_driver)
{
    static const char *const LIBRARIES[] = {"libcuda.so.1", "/stubs", "libcuda.so.1", "/compat", "libc.so.6", "/c", NULL};
    struct made jail, driver;
    struct library_cache merged;

    make(&jail, LIBRARIES, NULL);
    make(&driver, DRIVER, NULL);
    merged = merge(&jail, &driver);
    CHECK(strcmp(listed(&merged), "libnvidia-ml.so.1=/driver/libnvidia-ml.so.1 libcuda.so.1=/driver/libcuda.so.1 "
                                  "libc.so.6=/c") == 0);
    free(merged.bytes);
}

TEST(names_of_hardware_stay_those_of_the_jail)
{
    static const char *const LIBRARIES[] = {"libc.so.6", "/c", NULL};
    struct made jail, driver;
    struct library_cache merged;
    size_t extension;

    make(&jail, LIBRARIES, "x86-64-v3");
    make(&driver, DRIVER, "x86-64-v4");
    merged = merge(&jail, &driver);
    extension = get32(&merged, 32);
    CHECK(extension % 4 == 0 && get32(&merged, extension) == 0xeaa42174u);
    CHECK(strcmp(merged.bytes + get32(&merged, get32(&merged, extension + 16)), "x86-64-v3") == 0);
    free(merged.bytes);
}

TEST(an_older_list_before_the_newer_one_is_passed_over)
{
    static const char *const LIBRARIES[] = {"libc.so.6", "/c", NULL};
    struct made jail, driver, with_old;
    struct library_cache merged;

    make(&jail, LIBRARIES, NULL);
    make(&driver, DRIVER, NULL);
    memset(&with_old, 0, sizeof(with_old));
    memcpy(with_old.bytes, "ld.so-1.7.0", 11);
    put32(&with_old, 12, 3);
    with_old.size = 56; /* 16 and three entries of 12, to the next multiple of 8 */
    memcpy(with_old.bytes + with_old.size, jail.bytes, jail.size);
    with_old.size += jail.size;
    merged = merge(&with_old, &driver);
    CHECK_SAYS(listed(&merged), "libc.so.6=/c");
    CHECK_SAYS(listed(&merged), "libcuda.so.1=/driver/libcuda.so.1");
    free(merged.bytes);
}

TEST(a_cache_that_is_not_understood_gives_none)
{
    static const char *const LIBRARIES[] = {"libc.so.6", "/c", "ld-linux.so.2", "/ld", NULL};
    struct made whole, driver, broken;
    struct library_cache merged;

    make(&whole, LIBRARIES, NULL);
    make(&driver, DRIVER, NULL);
    for (size_t size = 0; size < whole.size; size++) { /* cut short anywhere */
        broken = whole;
        broken.size = size;
        merged = merge(&broken, &driver);
        CHECK(!merged.bytes);
    }
    broken = whole;
    broken.bytes[28] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 3 : 2; /* of a machine of the other byte order */
    CHECK(!merge(&broken, &driver).bytes);
    broken = whole;
    put32(&broken, 20, UINT32_MAX);
    CHECK(!merge(&broken, &driver).bytes);
    broken = whole;
    put32(&broken, ENTRIES + 4, (uint32_t)whole.size);
    CHECK(!merge(&broken, &driver).bytes);
}

TEST(a_cache_with_a_name_longer_than_any_path_gives_none)
{
    static char bytes[ENTRIES + ENTRY_BYTES + 4097];
    const struct library_cache jail = {bytes, sizeof(bytes)};
    struct library_cache second, merged;
    struct made driver;

    make(&driver, DRIVER, NULL);
    second = (struct library_cache){driver.bytes, driver.size};
    memcpy(bytes, driver.bytes, ENTRIES);
    memset(bytes + ENTRIES + ENTRY_BYTES, 'a', 4096);
    bytes[20] = 1; /* entries */
    bytes[ENTRIES + 4] = bytes[ENTRIES + 8] = ENTRIES + ENTRY_BYTES;
    CHECK(library_cache_merge(&jail, &second, &merged) == 0 && !merged.bytes);
}

TEST(an_extension_of_more_sections_than_a_loader_knows_is_left_out)
{
    static const char *const LIBRARIES[] = {"libc.so.6", "/c", NULL};
    struct made jail, driver;
    struct library_cache merged;
    uint32_t at;

    make(&jail, LIBRARIES, "x86-64-v3");
    make(&driver, DRIVER, NULL);
    memcpy(&at, jail.bytes + 32, sizeof(at));
    put32(&jail, at + 4, 17);
    jail.size = at + 8 + 17 * 16; /* the others are empty */
    memset(jail.bytes + at + 24, 0, jail.size - at - 24);
    merged = merge(&jail, &driver);
    CHECK(merged.bytes && get32(&merged, 32) == 0);
    free(merged.bytes);
}

TEST(an_extension_that_is_not_understood_is_left_out)
{
    static const char *const LIBRARIES[] = {"libc.so.6", "/c", NULL};
    struct made whole, driver, broken;
    struct library_cache merged;
    uint32_t at;

    make(&whole, LIBRARIES, "x86-64-v3");
    make(&driver, DRIVER, NULL);
    memcpy(&at, whole.bytes + 32, sizeof(at));
    for (int i = 0; i < 4; i++) {
        const size_t places[] = {32, at + 4, at + 16, at + 20};

        broken = whole;
        put32(&broken, places[i], UINT32_MAX - 7);
        merged = merge(&broken, &driver);
        CHECK(merged.bytes && get32(&merged, 32) == 0);
        CHECK_SAYS(listed(&merged), "libc.so.6=/c");
        free(merged.bytes);
    }
}
