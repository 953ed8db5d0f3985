#ifndef CANOPYD_CLINUX_COMMAND_LINE_H
#define CANOPYD_CLINUX_COMMAND_LINE_H
// What only a command line with a terminal needs.
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

// 0 and not 1: only then does glibc read the `+` of a new option string.
static inline void clinux_restart_options(void) { optind = 0; opterr = 0; }
// A descriptor that reads the signals of `mask`, which have to be blocked.
static inline int clinux_signalfd(const sigset_t *mask) {
    return (int)syscall(SYS_signalfd4, -1, mask, (size_t)8, O_CLOEXEC);
}
#endif
