#ifndef CANOPYD_CSYSTEMD_SHIM_H
#define CANOPYD_CSYSTEMD_SHIM_H
#include <sys/epoll.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <systemd/sd-id128.h>
#include <systemd/sd-journal.h>
#endif
