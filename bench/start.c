// How long a server takes from exec to its first answer, its socket being there already, as the
// service manager has it with socket activation: the request waits in the socket before the server
// is started.
//
//     start COUNT SOCKET PATH PROGRAM [ARGUMENT]...
//
// Says p50, least and most milliseconds. The server is ended with SIGTERM after each answer.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static int ascending(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

int main(int count, char **arguments) {
    if (count < 5) return 2;
    int runs = atoi(arguments[1]);
    if (runs < 1) return 2;
    double *times = malloc(sizeof *times * (size_t)runs);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, arguments[2], sizeof address.sun_path - 1);
    char request[512];
    int size = snprintf(request, sizeof request,
        "GET %s HTTP/1.1\r\nHost: canopyd\r\nAccept: application/json\r\n\r\n", arguments[3]);
    // One run more, so that the first finds the program in the page cache.
    for (int run = -1; run < runs; run++) {
        unlink(arguments[2]);
        int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
        if (bind(listener, (void *)&address, sizeof address) || listen(listener, 64) ||
            connect(client, (void *)&address, sizeof address) ||
            write(client, request, (size_t)size) != size)
            die(arguments[2]);
        fcntl(client, F_SETFD, FD_CLOEXEC);
        double before = now();
        pid_t child = fork();
        if (child < 0) die("fork");
        if (child == 0) {
            // 3 to 9 may be taken by what we were started with.
            int high = fcntl(listener, F_DUPFD, 10);
            if (high < 0 || dup2(high, 3) < 0) die("dup2");
            close(high);
            char number[16];
            snprintf(number, sizeof number, "%d", getpid());
            setenv("LISTEN_PID", number, 1);
            setenv("LISTEN_FDS", "1", 1);
            setenv("LISTEN_FDNAMES", "agent", 1);
            execv(arguments[4], arguments + 4);
            die(arguments[4]);
        }
        close(listener);
        char answer[65536];
        ssize_t got = read(client, answer, sizeof answer - 1);
        double after = now();
        if (got <= 0 || strncmp(answer, "HTTP/1.1 200 ", 13)) {
            fprintf(stderr, "start: %s answers: %.*s\n", arguments[4], got > 0 ? (int)got : 0, answer);
            kill(child, SIGTERM);
            return 1;
        }
        if (run >= 0) times[run] = after - before;
        close(client);
        kill(child, SIGTERM);
        int status;
        waitpid(child, &status, 0);
    }
    qsort(times, (size_t)runs, sizeof *times, ascending);
    printf("%.3f %.3f %.3f\n", times[runs / 2], times[0], times[runs - 1]);
    return 0;
}
