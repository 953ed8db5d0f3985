// The least that a command can do that prints a token: connect, ask, read, print the body.
//
//     oneshot SOCKET PATH
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int count, char **arguments) {
    if (count != 3) return 2;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, arguments[1], sizeof address.sun_path - 1);
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0 || connect(made, (void *)&address, sizeof address)) return 3;
    static char text[1 << 16];
    int size = snprintf(text, sizeof text,
        "GET %s HTTP/1.1\r\nHost: canopyd\r\nAccept: text/plain\r\n\r\n", arguments[2]);
    if (write(made, text, (size_t)size) != size) return 3;
    size_t have = 0;
    for (;;) {
        ssize_t got = read(made, text + have, sizeof text - 1 - have);
        if (got <= 0) return 3;
        text[have += (size_t)got] = 0;
        char *body = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");
        if (!body || !length) continue;
        body += 4;
        size_t wanted = strtoul(length + 16, NULL, 10);
        if (have - (size_t)(body - text) < wanted) continue;
        if (strncmp(text, "HTTP/1.1 200 ", 13)) return 1;
        return write(1, body, wanted) != (ssize_t)wanted;
    }
}
