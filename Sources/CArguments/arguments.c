#include "arguments.h"

static int count;
static char **vector;

// glibc hands main's arguments to constructors as well.
__attribute__((constructor)) static void keep(int number, char **arguments) {
    count = number;
    vector = arguments;
}

int carguments_count(void) { return count; }
char **carguments_vector(void) { return vector; }
