#ifndef CANOPYD_CLINUX_SHIM_H
#define CANOPYD_CLINUX_SHIM_H
// What Swift cannot say: variadic calls, macros, and prototypes that glibc hides behind
// _GNU_SOURCE. That macro must never be defined here: it changes declarations under the Swift
// overlay's feet, and debug builds fail where release builds pass.
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define CLINUX_MADV_DONTDUMP 16
#define CLINUX_MADV_WIPEONFORK 18
#define CLINUX_MFD_CLOEXEC 1u
#define CLINUX_GRND_NONBLOCK 1u

static inline int clinux_open(const char *path, int flags, unsigned mode) {
    return open(path, flags | O_CLOEXEC, mode);
}
static inline int clinux_openat(int directory, const char *path, int flags, unsigned mode) {
    return openat(directory, path, flags | O_CLOEXEC, mode);
}
static inline int clinux_fcntl_get_flags(int fd) { return fcntl(fd, F_GETFL); }
static inline int clinux_fcntl_set_flags(int fd, int flags) { return fcntl(fd, F_SETFL, flags); }
static inline int clinux_set_close_on_exec(int fd, int on) {
    return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0);
}
static inline int clinux_duplicate_above(int fd, int least) {
    return fcntl(fd, F_DUPFD_CLOEXEC, least);
}
static inline int clinux_memfd_create(const char *name) {
    return (int)syscall(SYS_memfd_create, name, CLINUX_MFD_CLOEXEC);
}
static inline int clinux_accept(int listener) {
    return (int)syscall(SYS_accept4, listener, (void *)0, (void *)0,
                        SOCK_NONBLOCK | SOCK_CLOEXEC);
}
static inline long clinux_getrandom(void *buffer, size_t size) {
    return syscall(SYS_getrandom, buffer, size, 0u);
}
struct clinux_peer { int pid; unsigned uid; unsigned gid; };
static inline int clinux_peer_credentials(int fd, struct clinux_peer *peer) {
    socklen_t size = sizeof *peer;
    return getsockopt(fd, SOL_SOCKET, 17 /* SO_PEERCRED */, peer, &size);
}
// A descriptor for the process that connected (Linux 6.5): unlike its number, it never means another.
static inline int clinux_peer_process(int fd) {
    int process = -1;
    socklen_t size = sizeof process;
    return getsockopt(fd, SOL_SOCKET, 77 /* SO_PEERPIDFD */, &process, &size) == 0 ? process : -1;
}
// The members of siginfo_t are macros over unions.
static inline int clinux_child_status(const siginfo_t *report) { return report->si_status; }
static inline int clinux_child_exited(const siginfo_t *report) {
    return report->si_code == CLD_EXITED;
}
// Freed memory is overwritten (all but what the thread's cache keeps: GLIBC_TUNABLES says so).
static inline int clinux_overwrite_freed_memory(void) { return mallopt(M_PERTURB, 165); }
// What is freed and not in use goes back to the system, from the middle of the heap as well.
static inline void clinux_give_memory_back(void) { malloc_trim(0); }
// Sends the bytes; a peer that is gone is an error and no signal.
static inline long clinux_send(int fd, const void *bytes, size_t count) {
    return send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
}
// Sends the pieces in one call; a peer that is gone is an error and no signal.
static inline long clinux_send_pieces(int fd, struct iovec *pieces, size_t count) {
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = pieces;
    message.msg_iovlen = count;
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}
static inline int clinux_set_dumpable(int on) { return prctl(PR_SET_DUMPABLE, on, 0, 0, 0); }
static inline int clinux_no_new_privileges(void) { return prctl(38, 1, 0, 0, 0); }

// Of glibc since 2.34; hidden behind _GNU_SOURCE in some releases of it.
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);
static inline int clinux_add_close_from(posix_spawn_file_actions_t *actions, int from) {
    return posix_spawn_file_actions_addclosefrom_np(actions, from);
}

#define CLINUX_LAST_SIGNAL 64
// Has a signal ignored that would have its default effect. The kernel is asked itself: glibc refuses the first
// two real-time signals, which it keeps for its threads, and which end a process all the same until it uses them.
static inline void clinux_ignore_if_default(int signal) {
    // The kernel's own struct: handler, flags, restorer, mask.
    struct { uintptr_t handler; unsigned long flags; uintptr_t restorer; uint64_t mask; } action;
    memset(&action, 0, sizeof action);
    if (syscall(SYS_rt_sigaction, signal, (void *)0, &action, sizeof action.mask) != 0) return;
    if (action.handler != (uintptr_t)SIG_DFL) return;
    action.handler = (uintptr_t)SIG_IGN;
    syscall(SYS_rt_sigaction, signal, &action, (void *)0, sizeof action.mask);
}

// Birth time and inode of a file, without statx's own struct, which glibc hides.
struct clinux_birth { uint64_t inode; int64_t seconds; uint32_t nanoseconds; int known; };
static inline int clinux_birth_of(int fd, struct clinux_birth *out) {
    struct { uint32_t tv_nsec_pad[64]; } raw;
    memset(&raw, 0, sizeof raw);
    // AT_EMPTY_PATH 0x1000; STATX_INO 0x100 | STATX_BTIME 0x800
    if (syscall(SYS_statx, fd, "", 0x1000, 0x900u, &raw) != 0) return -1;
    const unsigned char *bytes = (const unsigned char *)&raw;
    uint32_t mask;
    memcpy(&mask, bytes, 4);
    memcpy(&out->inode, bytes + 32, 8);
    memcpy(&out->seconds, bytes + 80, 8);
    memcpy(&out->nanoseconds, bytes + 88, 4);
    out->known = (mask & 0x800u) != 0;
    return 0;
}

// Locked, zeroed pages that stay out of core dumps and forked children. `locked` says whether
// the kernel granted the lock (RLIMIT_MEMLOCK); without it the memory still works.
static inline void *clinux_map_secret(size_t size, int *locked) {
    void *pages = mmap((void *)0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return (void *)0;
    madvise(pages, size, CLINUX_MADV_DONTDUMP);
    madvise(pages, size, CLINUX_MADV_WIPEONFORK);
    *locked = mlock(pages, size) == 0;
    return pages;
}
static inline void clinux_unmap_secret(void *pages, size_t size) {
    explicit_bzero(pages, size);
    munmap(pages, size);
}
// What `optarg` and friends are: Swift 6 refuses C globals.
static inline char *clinux_optarg(void) { return optarg; }
static inline int clinux_optind(void) { return optind; }
static inline int clinux_optopt(void) { return optopt; }
static inline void clinux_reset_options(void) { optind = 1; opterr = 0; }
extern char **environ;
static inline char **clinux_environment(void) { return environ; }
// A netlink socket that hears of links, addresses and routes.
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
static inline int clinux_network_changes(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0) return -1;
    struct sockaddr_nl address;
    memset(&address, 0, sizeof address);
    address.nl_family = AF_NETLINK;
    address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR
                        | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}
#endif
