#ifndef CANOPYD_CARGUMENTS_H
#define CANOPYD_CARGUMENTS_H
// What the kernel gave this process. Swift's CommandLine reads it from /proc, and has no arguments where there is no
// /proc or no descriptor is left: a program would do something else than it was told.
int carguments_count(void);
char **carguments_vector(void);
#endif
