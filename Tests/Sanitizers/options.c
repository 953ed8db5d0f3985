// What scripts/sanitize links into every program: its tests choose the environment of what they start.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *OPTIONS(void) { return VALUES; }

// Whether strace has this process already: LeakSanitizer wants to be its only tracer.
static int is_traced(void) {
    char text[4096];
    int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t count = status < 0 ? -1 : read(status, text, sizeof text - 1);
    if (status >= 0) close(status);
    if (count < 0) abort();
    text[count] = 0;
    const char *tracer = strstr(text, "\nTracerPid:");
    return tracer && strtol(tracer + strlen("\nTracerPid:"), NULL, 10) != 0;
}

// Whether this is what runs the tests: Swift's runtime hides there, in pointers with other bits in them, what is in use.
static int runs_tests(void) {
    char path[4096];
    ssize_t count = readlink("/proc/self/exe", path, sizeof path - 1);
    if (count < 0) abort();
    path[count] = 0;
    const char *end = strrchr(path, '.');
    return end && !strcmp(end, ".xctest");
}

// LeakSanitizer asks before it looks, at the end of a process.
int __lsan_is_turned_off(void) { return runs_tests() || is_traced(); }
