"""Where a secret may turn up: the journal, files, arguments and environments, and memory."""
import os, signal, socket, threading, time
from pathlib import Path


class Journal:
    """The journal's native socket: whoever writes to it is written down."""
    PATH = "/run/systemd/journal/socket"

    def __init__(self):
        os.makedirs(os.path.dirname(self.PATH), exist_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.PATH)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.lines = []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True: self.lines.append(self.socket.recv(1 << 20))

    def contents(self): return b"\n".join(list(self.lines))


class Processes:
    """Arguments and environments of all processes, looked at again and again."""

    def __init__(self):
        self.seen, self.rounds = {}, 0
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while True:
            self.look()
            self.rounds += 1
            time.sleep(0.002)

    def look(self):
        for process in os.listdir("/proc"):
            if not process.isdigit(): continue
            for what in ("cmdline", "environ"):
                try:
                    data = Path("/proc", process, what).read_bytes()
                except OSError:
                    continue  # It has ended.
                for entry in data.split(b"\0"): self.seen.setdefault(entry, (what, process))

    def contents(self): return list(self.seen.items())


class Region:
    def __init__(self, name, flags, data):
        self.name, self.flags, self.data = name, flags, data

    def __str__(self): return f"{self.name} ({' '.join(self.flags)})"


def memory(process):
    """Every region of a process's memory that can be read, with the kernel's flags for it, as it is at one moment."""
    os.kill(process, signal.SIGSTOP)
    try:
        while Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "Tt": time.sleep(0.001)
        return regions_of(process)
    finally:
        os.kill(process, signal.SIGCONT)


def regions_of(process):
    regions = []
    with open(f"/proc/{process}/smaps") as table, open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
        name = bounds = rights = None
        for line in table:
            fields = line.split()
            if "-" in fields[0] and not fields[0].endswith(":"):
                bounds = [int(part, 16) for part in fields[0].split("-")]
                rights, name = fields[1], " ".join(fields[5:]) or "anonymous"
            elif fields[0] == "VmFlags:" and rights.startswith("r") and name not in ("[vvar]", "[vsyscall]"):
                try:
                    regions.append(Region(f"{name} {rights}", fields[1:], read(memory, *bounds)))
                except OSError as error:
                    if name != "[vvar_vclock]": raise RuntimeError(f"{name} {rights}: {error}")
    return regions


def read(memory, start, end):
    memory.seek(start)
    parts = []
    while start < end:
        part = memory.read(end - start)
        if not part: break
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def files(root):
    """Path and contents of every file below a directory."""
    for path in sorted(Path(root).rglob("*")):
        try:
            if path.is_file() and not path.is_symlink(): yield str(path.relative_to(root)), path.read_bytes()
        except FileNotFoundError:
            pass  # It was replaced just now.
