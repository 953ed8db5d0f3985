#!/usr/bin/python3
"""Tries out what the unit forbids, in the unit's own sandbox, and prints what happened: one
"NAME RESULT" a line, where RESULT is "allowed" or the error's name.

Accepted is not effective: systemd's user manager ignores much of what a unit asks for. So each
directive is known by what it does."""

import ctypes
import errno
import mmap
import os
import resource
import socket
import stat

libc = ctypes.CDLL(None, use_errno=True)


def attempt(name, action):
    try:
        action()
        result = "allowed"
    except OSError as error:
        result = errno.errorcode[error.errno]
    print(name, result)


def call(function, *arguments):
    """A call of libc's, in a child that may be killed for it."""

    def action():
        child = os.fork()
        if child == 0:
            ctypes.set_errno(0)
            result = getattr(libc, function)(*arguments)
            os._exit(0 if result != -1 else ctypes.get_errno())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status < 0:
            raise RuntimeError(f"{function} was killed by signal {-status}")
        if status > 0:
            raise OSError(status, function)

    return action


def write(path):
    def action():
        with open(path, "w"):
            pass
        os.unlink(path)

    return action


def read(path):
    def action():
        with open(path, "rb") as file:
            file.read(1)

    return action


def make_setuid():
    path = os.environ["XDG_RUNTIME_DIR"] + "/probe-setuid"
    try:
        with open(path, "w"):
            pass
        os.chmod(path, stat.S_ISUID | 0o755)
    finally:
        os.unlink(path)


def status(key):
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(key + ":"):
                return line.split()[1]


home = os.environ["HOME"]
runtime = os.environ["XDG_RUNTIME_DIR"]
attempt("write-home", write(home + "/probe"))
attempt("write-data", write(home + "/.local/share/probe"))
attempt("write-state", write(home + "/.local/state/canopyd/probe"))
attempt("write-runtime", write(runtime + "/probe"))
attempt("write-usr", write("/usr/probe"))
attempt("write-var-tmp", write("/var/tmp/probe"))
attempt("see-tmp", read("/tmp/canopyd-marker"))
attempt("read-configuration", lambda: os.listdir(home))
attempt("read-kernel-log", read("/dev/kmsg"))
attempt("internet-socket", lambda: socket.socket(socket.AF_INET).close())
attempt("packet-socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close())
attempt("vsock-socket", lambda: socket.socket(socket.AF_VSOCK).close())
attempt("new-namespace", call("unshare", 0x10000000))
attempt("personality", call("personality", 0x0008))
attempt("ptrace", call("ptrace", 0, 0, 0, 0))
attempt("mount", call("mount", b"none", b"/var/tmp", b"tmpfs", 0, None))
attempt("host-name", call("sethostname", b"probe", 5))
attempt("clock", call("settimeofday", ctypes.create_string_buffer(16), None))
attempt("priority", call("setpriority", 0, 0, 1))
attempt("realtime", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
attempt("setuid-file", make_setuid)
attempt(
    "writable-code",
    lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC).close(),
)
# A user could not write there anyway; a mount that is read-only is the directive's doing.
for name, path in ("tunables", "/proc/sys"), ("control-groups", "/sys/fs/cgroup"):
    print(name, "read-only" if os.statvfs(path).f_flag & os.ST_RDONLY else "writable")
print("no-new-privileges", status("NoNewPrivs"))
print("capabilities", int(status("CapBnd"), 16))
with open("/proc/self/uid_map") as file:
    print("user-namespace", " ".join(file.read().split()))
print("core-bytes", resource.getrlimit(resource.RLIMIT_CORE)[1])
print("devices", ",".join(sorted(n for n in os.listdir("/dev") if n in ("kmsg", "mem", "sda", "null"))))
mask = os.umask(0)
print("umask", oct(mask))
