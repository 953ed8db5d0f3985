"""canopyd on a desktop of its own, as the service manager starts it, and its clients."""
import http.client, json, os, resource, signal, socket, subprocess, time
from pathlib import Path
import canary
from terminal import Terminal

BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><keep_umask/><listen>unix:path={}</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
"""


def eventually(what, condition, seconds=60):
    """Waits for something that tells nobody that it is there."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found: return found
        if time.monotonic() > end: raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


class Stage:
    def __init__(self, programs, root, server, journal):
        self.programs, self.root, self.server, self.journal = programs, Path(root), server, journal
        for name in ("home", "data", "state", "config", "keyring", "canopyd", "work"): (self.root / name).mkdir(mode=0o700)
        self.environment = {
            "PATH": "/usr/bin:/bin", "HOME": f"{root}/home", "XDG_RUNTIME_DIR": root, "XDG_DATA_HOME": f"{root}/data",
            "XDG_STATE_HOME": f"{root}/state", "XDG_CONFIG_HOME": f"{root}/config", "LANG": "C.UTF-8",
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={root}/bus", "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={root}/none",
            "CANOPY_URL": server.url, "CANOPY_PUBLISHABLE_KEY": "pk_canaries"}
        self.said = []  # What clients were told, and whether an access token may be in it.
        (self.root / "bus.conf").write_text(BUS.format(f"{root}/bus"))
        self.others = [self.start(["dbus-daemon", f"--config-file={root}/bus.conf", "--nofork", "--nopidfile"])]
        eventually("the bus", lambda: (self.root / "bus").exists())
        self.others.append(self.start(
            ["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets", f"--control-directory={root}/keyring"],
            b"the keyring's own"))
        eventually("the keyring", lambda: "true" in self.run(
            ["dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.DBus", "/", "org.freedesktop.DBus.NameHasOwner",
             "string:org.freedesktop.secrets"]).stdout.decode())
        self.sockets = {name: self.listen(f"{root}/canopyd/{name}.sock") for name in ("agent", "credential")}
        self.log = open(f"{root}/canopyd.log", "ab")
        self.daemon = None
        self.start_daemon()

    def listen(self, path):
        made = socket.socket(socket.AF_UNIX)
        made.bind(path)
        made.listen(100)
        return made

    def start(self, command, text=b""):
        process = subprocess.Popen(
            command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        process.stdin.write(text)
        process.stdin.close()
        return process

    def run(self, command, text=b"", **more):
        return subprocess.run(command, env=self.environment | more, input=text, capture_output=True, timeout=120)

    # canopyd

    def start_daemon(self):
        status = os.fstat(self.log.fileno())
        agent, credential = (self.sockets[name].fileno() for name in ("agent", "credential"))
        script = f"exec 3<&{agent} 4<&{credential}; LISTEN_PID=$$ exec {self.programs}/canopyd --log-level debug"
        self.daemon = subprocess.Popen(
            ["bash", "-c", script], pass_fds=(agent, credential), cwd=self.root / "work", stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=self.log, env=self.environment | {
                "LISTEN_FDS": "2", "LISTEN_FDNAMES": "agent:credential", "JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})
        self.ask("GET", "/v1/status")

    def kill_daemon(self, number=signal.SIGKILL):
        self.daemon.send_signal(number)
        return self.daemon.wait(60)

    def exchanges(self):
        """The exchanges that run for this canopyd."""
        return [int(p) for p in Path(f"/proc/{self.daemon.pid}/task/{self.daemon.pid}/children").read_text().split()]

    def stop(self):
        for process in [self.daemon, *self.others[::-1]]:
            process.terminate()
            process.wait(60)

    # Clients

    def ask(self, method, path, body=None, may_have_token=False, **headers):
        """Status and body of an answer; what it says is kept for the search."""
        link = http.client.HTTPConnection("canopyd", timeout=150)
        link.sock = socket.socket(socket.AF_UNIX)
        link.sock.settimeout(150)
        link.sock.connect(f"{self.root}/canopyd/agent.sock")
        link.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = link.getresponse()
        data = answer.read()
        self.said.append((f"{method} {path}", str(answer.headers).encode() + data, may_have_token and answer.status == 200))
        link.close()
        return answer.status, json.loads(data) if data.startswith(b"{") else data.decode()

    def log_in(self, profile, email, password=None):
        return self.ask("POST", f"/v1/profiles/{profile}/login", {
            "url": self.server.url, "publishable_key": "pk_canaries", "email": email,
            "password": password or canary.PASSWORD.make()})

    def signed_in(self, profile, email=None):
        status, answer = self.log_in(profile, email or f"{profile}@example.com")
        if status != 200: raise RuntimeError(f"the sign-in of {profile} failed: {status} {answer}")

    def token(self, profile):
        return self.ask("GET", f"/v1/token?profile={profile}&timeout=60", may_have_token=True)

    def state(self, profile):
        return self.ask("GET", f"/v1/profiles/{profile}")[1]

    def canopyctl(self, *arguments, text="", may_have_token=False, **more):
        done = self.run([f"{self.programs}/canopyctl", *arguments], text.encode(), **more)
        name = "canopyctl " + " ".join(arguments)
        self.said += [(name, done.stdout, may_have_token), (f"{name} (errors)", done.stderr, False)]
        return done

    def typed(self, arguments, answers):
        """A command on a terminal: each answer is typed once its prompt is shown."""
        waiting, end = list(answers), time.monotonic() + 60
        with Terminal(f"{self.programs}/canopyctl", *arguments, env=self.environment) as terminal:
            while terminal.read(1):
                if time.monotonic() > end: raise RuntimeError(f"it does not end: {terminal.shown!r}")
                if waiting and waiting[0][0].encode() in terminal.shown.lower():
                    terminal.type(waiting.pop(0)[1] + "\n")
            status, shown = terminal.wait(60), terminal.shown
        self.said.append(("a terminal", shown, False))
        return status, shown

    def credential(self, profile):
        """What a unit with LoadCredential= is given: its name says who asks."""
        link = socket.socket(socket.AF_UNIX)
        link.bind("\0" + f"0123456789abcdef/unit/canaries.service/{profile}")
        link.settimeout(60)
        link.connect(f"{self.root}/canopyd/credential.sock")
        data = b""
        while part := link.recv(65536): data += part
        return data


def allow_core(process):
    """Takes back what keeps a process from dumping core, as far as another process can."""
    try:
        resource.prlimit(process, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return True
    except PermissionError:
        return False


def crash(process):
    """Makes a process die of a fault of its own: a signal that is sent to it, it may ignore. An instruction that is
    none is written where its system call returns to; only its own copy of the page is changed."""
    where = Path(f"/proc/{process}/syscall")
    address = int(eventually("it waits in a system call", lambda: where.read_text().split()[8:9])[0], 16)
    with open(f"/proc/{process}/mem", "r+b", buffering=0) as memory:
        memory.seek(address)
        memory.write(b"\x0f\x0b" if os.uname().machine == "x86_64" else bytes(4))
