#include "library_cache.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define OLD_MAGIC "ld.so-1.7.0" /* an older list, which may come before the one that every glibc of today reads */
#define OLD_HEADER_BYTES 16
#define OLD_ENTRY_BYTES 12
#define MAGIC "glibc-ld.so.cache1.1"
#define EXTENSION_MAGIC 0xeaa42174u
#define TAG_HARDWARE_NAMES 1
#define MAX_SECTIONS 16 /* glibc writes two */
#define OWN_BYTE_ORDER (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 2 : 3)

struct header {
    char magic[20];
    uint32_t count;
    uint32_t string_bytes;
    uint8_t byte_order;
    uint8_t padding[3];
    uint32_t extension; /* where it begins, or 0 */
    uint32_t unused[3];
};

struct entry {
    int32_t flags;
    uint32_t name;
    uint32_t path;
    uint32_t os_version;
    uint64_t hardware;
};

struct extension {
    uint32_t magic;
    uint32_t count;
};

struct section {
    uint32_t tag;
    uint32_t flags;
    uint32_t start;
    uint32_t size;
};

_Static_assert(sizeof(struct header) == 48 && sizeof(struct entry) == 24, "glibc's layout");

/* A cache that has been checked: every name and path ends within it. */
struct view {
    const char *bytes;
    size_t size;
    const struct header *header;
    const struct entry *entries;
    size_t entries_end;
    uint32_t extension;
};

/* Bounded: entries that share one long string would cost their number times its length. */
static bool is_text(const struct view *cache, uint32_t at)
{
    if (at < cache->entries_end || at >= cache->size)
        return false;
    return memchr(cache->bytes + at, '\0', cache->size - at < PATH_MAX ? cache->size - at : PATH_MAX);
}

/* Skip the older list. Its end is aligned as the newer header is, to 8 bytes. */
static size_t start_of_new(const struct library_cache *cache)
{
    uint32_t count;

    if (cache->size < OLD_HEADER_BYTES || memcmp(cache->bytes, OLD_MAGIC, strlen(OLD_MAGIC)) != 0)
        return 0;
    memcpy(&count, cache->bytes + OLD_HEADER_BYTES - sizeof(count), sizeof(count));
    return (OLD_HEADER_BYTES + (size_t)count * OLD_ENTRY_BYTES + 7) & ~(size_t)7;
}

static bool open_view(const struct library_cache *cache, struct view *view)
{
    size_t start = start_of_new(cache);

    if (cache->size < start || cache->size - start < sizeof(struct header) ||
        memcmp(cache->bytes + start, MAGIC, strlen(MAGIC)) != 0)
        return false;
    view->bytes = cache->bytes + start;
    view->size = cache->size - start;
    view->header = (const struct header *)(const void *)view->bytes;
    view->entries = (const struct entry *)(const void *)(view->bytes + sizeof(struct header));
    view->entries_end = sizeof(struct header) + (size_t)view->header->count * sizeof(struct entry);
    if (view->entries_end > view->size || view->size > UINT32_MAX / 4 ||
        (view->header->byte_order != 0 && view->header->byte_order != OWN_BYTE_ORDER)) /* 0: of an old ldconfig */
        return false;
    view->extension = start == 0 ? view->header->extension : 0; /* it counts from the file's start */
    for (size_t i = 0; i < view->header->count; i++)
        if (!is_text(view, view->entries[i].name) || !is_text(view, view->entries[i].path))
            return false;
    return true;
}

/* glibc's order of names, in which numbers count as numbers (_dl_cache_libcmp). */
static int compare_names(const char *left, const char *right)
{
    while (*left) {
        bool left_digit = *left >= '0' && *left <= '9', right_digit = *right >= '0' && *right <= '9';

        if (left_digit && right_digit) {
            char *left_end, *right_end;
            unsigned long first = strtoul(left, &left_end, 10), second = strtoul(right, &right_end, 10);

            if (first != second)
                return first < second ? -1 : 1;
            left = left_end;
            right = right_end;
        } else if (left_digit != right_digit) {
            return left_digit ? 1 : -1;
        } else if (*left != *right) {
            return (unsigned char)*left < (unsigned char)*right ? -1 : 1;
        } else {
            left++;
            right++;
        }
    }
    return *right ? -1 : 0;
}

/* The order of a cache: names and flags fall. */
static int compare_entries(const struct view *left_of, const struct entry *left, const struct view *right_of,
                           const struct entry *right)
{
    int order = compare_names(right_of->bytes + right->name, left_of->bytes + left->name);

    if (order != 0)
        return order;
    return (left->flags < right->flags) - (left->flags > right->flags);
}

/* Write an entry whose strings have moved. */
static void put(struct entry **to, const struct entry *from, uint32_t moved)
{
    **to = *from;
    (*to)->name += moved;
    (*to)->path += moved;
    (*to)++;
}

/* Returns the number of entries. */
static size_t merge_entries(const struct view *jail, uint32_t jail_moved, const struct view *driver,
                            uint32_t driver_moved, struct entry *entries)
{
    struct entry *next = entries;
    size_t i = 0, j = 0;

    while (i < jail->header->count || j < driver->header->count) {
        int order = i == jail->header->count     ? -1
                    : j == driver->header->count ? 1
                                                 : compare_entries(driver, &driver->entries[j], jail, &jail->entries[i]);

        if (order == 0)
            i++;
        else if (order < 0)
            put(&next, &driver->entries[j++], driver_moved);
        else
            put(&next, &jail->entries[i++], jail_moved);
    }
    return (size_t)(next - entries);
}

static void add_at(char *bytes, size_t at, uint32_t moved)
{
    uint32_t value;

    memcpy(&value, bytes + at, sizeof(value));
    value += moved;
    memcpy(bytes + at, &value, sizeof(value));
}

/* Move what the extension refers to. One that is not understood is left out: the loader does without. */
static bool move_extension(char *bytes, size_t size, size_t at, uint32_t moved)
{
    struct extension extension;
    struct section section;

    if (at > size || size - at < sizeof(extension))
        return false;
    memcpy(&extension, bytes + at, sizeof(extension));
    if (extension.magic != EXTENSION_MAGIC || extension.count > MAX_SECTIONS ||
        extension.count > (size - at - sizeof(extension)) / sizeof(section))
        return false;
    for (size_t i = 0; i < extension.count; i++) {
        size_t place = at + sizeof(extension) + i * sizeof(section);

        memcpy(&section, bytes + place, sizeof(section));
        if (section.start > size - moved || section.size > size - moved - section.start)
            return false;
        add_at(bytes, place + offsetof(struct section, start), moved);
        if (section.tag == TAG_HARDWARE_NAMES)
            for (size_t name = 0; name + sizeof(uint32_t) <= section.size; name += sizeof(uint32_t))
                add_at(bytes, section.start + moved + name, moved);
    }
    return true;
}

int library_cache_merge(const struct library_cache *jail, const struct library_cache *driver,
                        struct library_cache *merged)
{
    struct view of_jail, of_driver;
    size_t room, strings, jail_rest, driver_rest;
    struct header header;

    *merged = (struct library_cache){NULL, 0};
    if (!open_view(jail, &of_jail) || !open_view(driver, &of_driver))
        return 0;
    /* header, entries, a gap for those that are left out, what follows the jail's entries, what follows the driver's */
    room = of_driver.header->count * sizeof(struct entry);
    jail_rest = of_jail.size - of_jail.entries_end;
    driver_rest = of_driver.size - of_driver.entries_end;
    strings = of_jail.size + room;
    if (!(merged->bytes = calloc(1, strings + driver_rest)))
        return -1;
    merged->size = strings + driver_rest;
    header = *of_jail.header;
    header.count = (uint32_t)merge_entries(&of_jail, (uint32_t)room, &of_driver,
                                           (uint32_t)(strings - of_driver.entries_end),
                                           (struct entry *)(void *)(merged->bytes + sizeof(header)));
    header.string_bytes += of_driver.header->string_bytes;
    memcpy(merged->bytes + of_jail.entries_end + room, of_jail.bytes + of_jail.entries_end, jail_rest);
    memcpy(merged->bytes + strings, of_driver.bytes + of_driver.entries_end, driver_rest);
    header.extension = of_jail.extension ? of_jail.extension + (uint32_t)room : 0;
    if (header.extension && !move_extension(merged->bytes, strings, header.extension, (uint32_t)room))
        header.extension = 0;
    memcpy(merged->bytes, &header, sizeof(header));
    return 0;
}
