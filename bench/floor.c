// The floor: the cheapest server that still speaks HTTP/1.1 over a Unix socket. One thread; it looks
// for the end of a request's head and sends always the same 200. What canopyd costs is told as a
// multiple of it, measured in the same run.
//
//     floor [--sd-event] SOCKET BODY-BYTES
//
// Plain, it has an epoll loop of its own; with --sd-event it has libsystemd's, as canopyd has. Under
// socket activation (LISTEN_FDS) it serves the inherited socket.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-event.h>
#include <unistd.h>

static char *reply;
static size_t reply_size;
static char input[32768];

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void make_reply(size_t body) {
    reply = malloc(256 + body);
    if (!reply) die("malloc");
    int head = sprintf(reply,
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Type: application/json\r\n"
        "Content-Length: %zu\r\n\r\n", body);
    memset(reply + head, 'r', body);
    reply_size = (size_t)head + body;
}

static int listening(const char *path) {
    if (getenv("LISTEN_FDS")) return 3;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    unlink(path);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (void *)&address, sizeof address) || listen(listener, 4096))
        die(path);
    return listener;
}

// Serves what has come; 0 when the client is gone, or does not read. Its clients send whole heads
// at once: a half one would be forgotten.
static int serve(int client) {
    ssize_t count = recv(client, input, sizeof input, 0);
    if (count <= 0) return count < 0 && errno == EAGAIN;
    char *rest = input, *end = input + count, *found;
    while ((found = memmem(rest, (size_t)(end - rest), "\r\n\r\n", 4))) {
        if (send(client, reply, reply_size, MSG_NOSIGNAL) != (ssize_t)reply_size) return 0;
        rest = found + 4;
    }
    return rest != input;
}

static int accept_one(int listener) {
    return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static void run_epoll(int listener) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event interest = {.events = EPOLLIN, .data.fd = listener}, events[256];
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &interest)) die("epoll");
    for (;;) {
        int count = epoll_wait(epoll, events, 256, -1);
        for (int index = 0; index < count; index++) {
            int ready = events[index].data.fd;
            if (ready != listener) {
                if (!serve(ready)) close(ready);
                continue;
            }
            for (int client; (client = accept_one(listener)) >= 0;) {
                // The request is usually there already.
                if (!serve(client)) {
                    close(client);
                    continue;
                }
                interest = (struct epoll_event){.events = EPOLLIN, .data.fd = client};
                if (epoll_ctl(epoll, EPOLL_CTL_ADD, client, &interest)) die("epoll_ctl");
            }
        }
    }
}

static int client_ready(sd_event_source *source, int client, uint32_t events, void *data) {
    (void)events, (void)data;
    if (!serve(client)) {
        sd_event_source_disable_unref(source);
        close(client);
    }
    return 0;
}

static int listener_ready(sd_event_source *source, int listener, uint32_t events, void *data) {
    (void)events, (void)data;
    for (int client; (client = accept_one(listener)) >= 0;) {
        if (!serve(client)) {
            close(client);
            continue;
        }
        sd_event_source *added;
        if (sd_event_add_io(sd_event_source_get_event(source), &added, client, EPOLLIN,
                            client_ready, NULL) < 0)
            die("sd_event_add_io");
    }
    return 0;
}

static void run_sd_event(int listener) {
    sd_event *event;
    if (sd_event_new(&event) < 0 ||
        sd_event_add_io(event, NULL, listener, EPOLLIN, listener_ready, NULL) < 0)
        die("sd-event");
    sd_event_loop(event);
}

int main(int count, char **arguments) {
    int on_sd_event = count > 1 && !strcmp(arguments[1], "--sd-event");
    if (count != 3 + on_sd_event) {
        fprintf(stderr, "usage: floor [--sd-event] SOCKET BODY-BYTES\n");
        return 2;
    }
    make_reply(strtoul(arguments[2 + on_sd_event], NULL, 10));
    int listener = listening(arguments[1 + on_sd_event]);
    if (on_sd_event)
        run_sd_event(listener);
    else
        run_epoll(listener);
    return 1;
}
