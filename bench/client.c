// Clients that ask several servers in turn, and time the answers.
//
//     client [-n CLIENTS] [-t SECONDS] [-b MILLISECONDS] [-f] TARGET...
//
// A TARGET is NAME,PID,PROTOCOL,SOCKET[,EXTRA]. All clients (a process each) ask the first target for
// a block of -b milliseconds, then the next, and so on, until each target had -t seconds: what else
// the machine does meets all targets alike. -f: a new connection for each request; its making and
// closing is in the time. Protocols:
//     http  GET of the path EXTRA            ssh   list the identities
//     gpg   the cached passphrase EXTRA      oidc  the request EXTRA (JSON); it closes by itself
// A line for each target: name, answers, failures, answers a second, p50 and p99 in microseconds,
// and microseconds of processor time that the server (PID) spent on each answer.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <signal.h>
#include <unistd.h>

enum { most_targets = 8, fine = 9, buckets = 40 << fine };

struct target {
    char *name, *protocol, *path, *extra;
    int pid;
    char request[1024];
    size_t request_size;
};
static struct target targets[most_targets];
static int target_count;
static int fresh;

// What each client counts, in memory that all share: latencies in nanoseconds, to 0.2 %.
struct counts {
    uint32_t latency[buckets];
    uint64_t answers, failures;
};
static struct counts *shared;
static volatile int64_t *start;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static int bucket(uint64_t value) {
    int shift = 63 - __builtin_clzll(value | 1) - fine;
    if (shift <= 0) return (int)value;
    return (int)(((uint64_t)(shift + 1) << fine) + ((value >> shift) & ((1u << fine) - 1)));
}

static double value_of(int bucket) {
    int shift = (bucket >> fine) - 1;
    if (shift <= 0) return bucket;
    return (double)((1ull << fine | (bucket & ((1 << fine) - 1))) << shift);
}

static void die(const char *what) {
    perror(what);
    _exit(3);
}

static char answer[1 << 20];

static int starts(const char *text) { return !strncmp(answer, text, strlen(text)); }

// Reads until `size` bytes or the end; returns how many there are now.
static size_t more(int socket, size_t have) {
    ssize_t count = recv(socket, answer + have, sizeof answer - 1 - have, 0);
    if (count <= 0) return have;
    answer[have + (size_t)count] = 0;
    return have + (size_t)count;
}

static int receive(const struct target *target, int socket) {
    size_t have = 0, wanted = 0;
    for (size_t had;; ) {
        had = have;
        have = more(socket, have);
        int ended = have == had;
        switch (target->protocol[0]) {
        case 'h':
            if (!wanted) {
                char *end = strstr(answer, "\r\n\r\n");
                char *length = end ? strcasestr(answer, "content-length:") : NULL;
                if (length)
                    wanted = (size_t)(end + 4 - answer) + strtoul(length + 15, NULL, 10);
            }
            if (wanted && have >= wanted) return starts("HTTP/1.1 200 ");
            break;
        case 's':
            if (have >= 5) {
                uint32_t size;
                memcpy(&size, answer, 4);
                if (have >= 4 + (size_t)ntohl(size)) return answer[4] == 12;
            }
            break;
        case 'g':
            if (have && answer[have - 1] == '\n') {
                if (starts("ERR")) return 0;
                if (starts("OK") || strstr(answer, "\nOK")) return 1;
            }
            break;
        case 'o':
            if (have && answer[have - 1] == '}') return strstr(answer, "success") != NULL;
            break;
        }
        if (ended) return 0;
    }
}

static int dial(const struct target *target) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, target->path, sizeof address.sun_path - 1);
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0 || connect(made, (void *)&address, sizeof address)) die(target->path);
    if (target->protocol[0] == 'g') {
        // It greets first.
        size_t have = 0;
        do {
            size_t had = have;
            have = more(made, have);
            if (have == had) die("no greeting");
        } while (answer[have - 1] != '\n');
    }
    return made;
}

static int ask(const struct target *target, int socket) {
    if (send(socket, target->request, target->request_size, MSG_NOSIGNAL) !=
        (ssize_t)target->request_size)
        return 0;
    answer[0] = 0;
    return receive(target, socket);
}

static void prepare(struct target *target, char *text) {
    target->name = strsep(&text, ",");
    char *pid = strsep(&text, ",");
    target->protocol = strsep(&text, ",");
    target->path = strsep(&text, ",");
    target->extra = text ? text : "";
    if (!target->path) {
        fprintf(stderr, "client: %s is no target\n", target->name);
        exit(2);
    }
    target->pid = atoi(pid);
    size_t room = sizeof target->request;
    int size = 0;
    switch (target->protocol[0]) {
    case 'h':
        size = snprintf(target->request, room,
            "GET %s HTTP/1.1\r\nHost: canopyd\r\nAccept: application/json\r\n\r\n", target->extra);
        break;
    case 's':
        memcpy(target->request, "\0\0\0\1\13", 5);
        size = 5;
        break;
    case 'g':
        size = snprintf(target->request, room, "GET_PASSPHRASE --data --no-ask %s X X X\n",
                        target->extra);
        break;
    case 'o':
        size = snprintf(target->request, room, "%s", target->extra);
        break;
    }
    if (size <= 0 || (size_t)size >= room) exit(2);
    target->request_size = (size_t)size;
}

static void client(struct counts *counts, int64_t length, int64_t block) {
    int sockets[most_targets];
    for (int index = 0; index < target_count; index++) {
        sockets[index] = fresh ? -1 : dial(&targets[index]);
        for (int warm = 0; warm < 20; warm++) {
            if (fresh) sockets[index] = dial(&targets[index]);
            if (!ask(&targets[index], sockets[index])) {
                fprintf(stderr, "client: %s answers: %.120s\n", targets[index].name, answer);
                _exit(4);
            }
            if (fresh) close(sockets[index]);
        }
    }
    __atomic_fetch_add(&start[1], 1, __ATOMIC_SEQ_CST);
    int64_t began;
    while (!(began = start[0])) usleep(200);
    while (now() < began) usleep(200);
    for (;;) {
        int64_t before = now();
        if (before - began >= length) break;
        int64_t turn = (before - began) / block;
        int index = (int)(turn % target_count);
        if (fresh) sockets[index] = dial(&targets[index]);
        int good = ask(&targets[index], sockets[index]);
        if (fresh) close(sockets[index]);
        int64_t after = now();
        // An answer that came in the next one's time counts for neither.
        if (good && (after - began) / block != turn) continue;
        if (good) {
            counts[index].answers++;
            counts[index].latency[bucket((uint64_t)(after - before))]++;
            continue;
        }
        counts[index].failures++;
        if (!fresh) {
            close(sockets[index]);
            sockets[index] = dial(&targets[index]);
        }
    }
    _exit(0);
}

// Nanoseconds of processor time of all threads of a process, those that have ended too.
static double processor_time(int pid) {
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &time)) die("processor time");
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double quantile(const uint64_t *sum, uint64_t total, double part) {
    uint64_t before = 0, wanted = (uint64_t)((double)total * part);
    for (int index = 0; index < buckets; index++) {
        before += sum[index];
        if (before > wanted) return value_of(index) / 1e3;
    }
    return 0;
}

int main(int count, char **arguments) {
    int clients = 1;
    double seconds = 1, block_milliseconds = 50;
    for (int option; (option = getopt(count, arguments, "n:t:b:f")) != -1;) {
        switch (option) {
        case 'n': clients = atoi(optarg); break;
        case 't': seconds = atof(optarg); break;
        case 'b': block_milliseconds = atof(optarg); break;
        case 'f': fresh = 1; break;
        default: return 2;
        }
    }
    for (; optind < count && target_count < most_targets; optind++)
        prepare(&targets[target_count++], arguments[optind]);
    if (!target_count || optind < count || clients < 1) return 2;

    size_t size = sizeof *shared * (size_t)(clients * target_count);
    int flags = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE;
    shared = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    start = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (shared == MAP_FAILED || start == MAP_FAILED) die("mmap");

    int64_t block = (int64_t)(block_milliseconds * 1e6);
    int64_t rounds = (int64_t)(seconds * 1e9 / (double)block + 0.5);
    int64_t length = (rounds ? rounds : 1) * block * target_count;
    for (int index = 0; index < clients; index++) {
        pid_t child = fork();
        if (child < 0) die("fork");
        if (!child) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            client(shared + index * target_count, length, block);
        }
    }
    while (start[1] < clients) {
        int status;
        if (waitpid(-1, &status, WNOHANG) > 0) return 4;
        usleep(1000);
    }
    double spent[most_targets];
    for (int index = 0; index < target_count; index++)
        spent[index] = processor_time(targets[index].pid);
    start[0] = now() + 2000000;
    int failed = 0;
    for (int status; wait(&status) > 0;) failed |= status;
    if (failed) return 4;

    double each = (double)length / target_count / 1e9;
    for (int index = 0; index < target_count; index++) {
        double used = processor_time(targets[index].pid) - spent[index];
        static uint64_t sum[buckets];
        memset(sum, 0, sizeof sum);
        uint64_t answers = 0, failures = 0;
        for (int one = 0; one < clients; one++) {
            struct counts *counts = &shared[one * target_count + index];
            answers += counts->answers;
            failures += counts->failures;
            for (int at = 0; at < buckets; at++) sum[at] += counts->latency[at];
        }
        printf("%s %llu %llu %.1f %.2f %.2f %.3f\n", targets[index].name,
               (unsigned long long)answers, (unsigned long long)failures,
               (double)answers / each, quantile(sum, answers, 0.5), quantile(sum, answers, 0.99),
               used / 1e3 / (double)(answers ? answers : 1));
    }
    return 0;
}
