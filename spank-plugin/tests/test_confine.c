#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../confine.h"
#include "harness.h"
#include "world.h"

static struct failure failure;

static void confine_all(bool user_namespaces)
{
    if (confine(~UINT64_C(0), user_namespaces, &failure) < 0)
        CHECK_SAYS(failure.text, "(no failure)");
}

static void capabilities(struct __user_cap_data_struct sets[2])
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

    CHECK(syscall(SYS_capget, &header, sets) == 0);
}

TEST(a_confined_user_has_no_capability_and_can_get_none)
{
    struct __user_cap_data_struct sets[2];

    confine_all(false);
    world_become_user();
    for (int number = 0; prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; number++)
        CHECK(prctl(PR_CAPBSET_READ, number, 0, 0, 0) == 0);
    capabilities(sets);
    for (int i = 0; i < 2; i++)
        CHECK(sets[i].effective == 0 && sets[i].permitted == 0 && sets[i].inheritable == 0);
    CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_SYS_ADMIN, 0, 0) == 0);
    CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
    CHECK(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2);
}

TEST(ambient_and_inheritable_capabilities_are_cleared)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];

    capabilities(sets);
    sets[0].inheritable = 1u << CAP_CHOWN;
    CHECK(syscall(SYS_capset, &header, sets) == 0);
    CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0) == 0);
    confine_all(false);
    capabilities(sets);
    CHECK(sets[0].inheritable == 0 && sets[1].inheritable == 0);
    CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0) == 0);
}

TEST(only_the_named_capabilities_are_dropped)
{
    CHECK(confine(CAPABILITY(CAP_SYS_ADMIN) | CAPABILITY(CAP_SETPCAP), false, &failure) == 0);
    CHECK(prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) == 0);
    CHECK(prctl(PR_CAPBSET_READ, CAP_SETPCAP, 0, 0, 0) == 0);
    CHECK(prctl(PR_CAPBSET_READ, CAP_SYS_CHROOT, 0, 0, 0) == 1);
}

TEST(without_the_right_to_drop_capabilities_it_is_a_failure)
{
    world_become_user();
    CHECK(confine(~UINT64_C(0), false, &failure) == -1);
    CHECK(failure.scope == FAILURE_NODE);
    CHECK_SAYS(failure.text, "bounding set");
}

#define REFUSED(call) CHECK((call) == -1 && errno == EPERM)

/* As root with every capability still effective: what refuses is the filter. */
TEST(the_filter_refuses_mounts_and_namespaces)
{
    confine_all(false);
    REFUSED(mount("x", "/mnt", "tmpfs", 0, NULL));
    REFUSED(umount2("/mnt", MNT_DETACH));
    REFUSED(syscall(SYS_pivot_root, ".", "."));
    REFUSED(syscall(SYS_open_tree, AT_FDCWD, "/", 0));
    REFUSED(syscall(SYS_move_mount, -1, "", -1, "", 0));
    REFUSED(syscall(SYS_fsopen, "tmpfs", 0));
    REFUSED(syscall(SYS_fsconfig, -1, 0, NULL, NULL, 0));
    REFUSED(syscall(SYS_fsmount, -1, 0, 0));
    REFUSED(syscall(SYS_fspick, AT_FDCWD, "/", 0));
    REFUSED(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, NULL, 0));
    REFUSED(syscall(SYS_setns, open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), 0));
}

TEST(the_filter_refuses_every_kind_of_namespace_and_no_more)
{
    static const unsigned int KINDS[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                         CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

    confine_all(false);
    for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++) {
        REFUSED(syscall(SYS_unshare, KINDS[i]));
        REFUSED(syscall(SYS_unshare, KINDS[i] | CLONE_FS));
        REFUSED(syscall(SYS_clone, KINDS[i] | SIGCHLD, NULL, NULL, NULL, NULL));
    }
    REFUSED(syscall(SYS_unshare, CLONE_NEWTIME));
    CHECK(syscall(SYS_clone3, NULL, 0) == -1 && errno == ENOSYS);
    CHECK(unshare(CLONE_FS | CLONE_FILES) == 0);
}

TEST(the_filter_refuses_what_administers_the_kernel)
{
    confine_all(true);
    REFUSED(syscall(SYS_bpf, 0, NULL, 0));
    REFUSED(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
    REFUSED(syscall(SYS_fanotify_init, 0, 0));
    REFUSED(syscall(SYS_quotactl, 0, NULL, 0, NULL));
    REFUSED(syscall(SYS_syslog, 3, NULL, 0));
    REFUSED(syscall(SYS_sethostname, "x", 1));
    REFUSED(syscall(SYS_setdomainname, "x", 1));
    REFUSED(syscall(SYS_name_to_handle_at, AT_FDCWD, "/", NULL, NULL, 0));
    REFUSED(syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, 0));
    REFUSED(syscall(SYS_setns, -1, 0));
}

#ifdef __x86_64__
TEST(other_tables_of_system_calls_are_not_there)
{
    long result;

    confine_all(false);
    /* int 0x80: mount of 32-bit programs */
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(21), "b"(0), "c"(0), "d"(0), "S"(0), "D"(0) : "memory");
    CHECK(result == -ENOSYS);
    CHECK(syscall(0x40000000 | SYS_mount, NULL, NULL, NULL, 0, NULL) == -1 && errno == ENOSYS);
}
#endif

static void *nothing(void *unused)
{
    return unused;
}

TEST(threads_and_processes_start_all_the_same)
{
    pthread_t thread;

    confine_all(false);
    world_become_user();
    CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    CHECK(test_await(child) == 7);
}

TEST(user_namespaces_can_be_left)
{
    confine_all(true);
    world_become_user();
    CHECK(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0);
    CHECK(mount("x", "/mnt", "tmpfs", 0, NULL) == 0);
}

TEST(a_user_who_is_confined_makes_no_user_namespace)
{
    confine_all(false);
    world_become_user();
    REFUSED(unshare(CLONE_NEWUSER));
}

/* Refuse, to this process, to install a filter without a flag. */
static void refuse_filters_without(unsigned int flag)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flag, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDOM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0);
}

TEST(the_filter_does_not_slow_speculation_down)
{
    refuse_filters_without(SECCOMP_FILTER_FLAG_SPEC_ALLOW);
    confine_all(false);
}
