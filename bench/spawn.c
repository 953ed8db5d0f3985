// How long commands take, from their start to their end, asked in turn: what else the machine does
// meets all alike. Their output is read through a pipe, as a shell's $(…) does, and each reads the file
// SPAWN_INPUT from its beginning, or nothing.
//
//     spawn COUNT COMMAND [ARGUMENT]... [-- COMMAND [ARGUMENT]...]...
//
// A line for each command: failures, p50 and p99 in milliseconds, bytes of output.
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { most_commands = 8, most_runs = 100000, warm = 3 };
extern char **environ;
static double times[most_commands][most_runs];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static int ascending(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int count, char **arguments) {
    int runs = count > 2 ? atoi(arguments[1]) : 0;
    if (runs < 1 || runs > most_runs) return 2;
    char **commands[most_commands];
    int command_count = 1;
    commands[0] = arguments + 2;
    for (int index = 2; index < count; index++) {
        if (strcmp(arguments[index], "--")) continue;
        arguments[index] = NULL;
        if (command_count == most_commands) return 2;
        commands[command_count++] = arguments + index + 1;
    }
    const char *input = getenv("SPAWN_INPUT");
    int failures[most_commands] = {0};
    size_t bytes[most_commands] = {0};
    for (int run = -warm; run < runs; run++) {
        for (int index = 0; index < command_count; index++) {
            int ends[2];
            if (pipe2(ends, O_CLOEXEC)) return 1;
            posix_spawn_file_actions_t actions;
            posix_spawn_file_actions_init(&actions);
            posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
            posix_spawn_file_actions_addopen(&actions, 0, input ? input : "/dev/null", O_RDONLY, 0);
            double before = now();
            pid_t child;
            if (posix_spawn(&child, commands[index][0], &actions, NULL, commands[index], environ)) {
                perror(commands[index][0]);
                return 1;
            }
            close(ends[1]);
            char buffer[65536];
            bytes[index] = 0;
            for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
                bytes[index] += (size_t)got;
            int status;
            waitpid(child, &status, 0);
            if (run >= 0) {
                times[index][run] = now() - before;
                failures[index] += status != 0;
            }
            close(ends[0]);
            posix_spawn_file_actions_destroy(&actions);
        }
    }
    for (int index = 0; index < command_count; index++) {
        qsort(times[index], (size_t)runs, sizeof **times, ascending);
        printf("%d %.4f %.4f %zu\n", failures[index], times[index][runs / 2],
               times[index][(int)((runs - 1) * 0.99)], bytes[index]);
    }
    return 0;
}
