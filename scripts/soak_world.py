"""One desktop under fire: a bus, a gnome-keyring, a server and a canopyd, and who kills them. See scripts/soak."""
import ctypes, http.client, json, os, random, signal, socket, subprocess, time
from pathlib import Path

from unix_connection import UnixConnection

# What the server may do to a refresh, by the row of the table of answers that it stands for. "no-refresh-token" and the
# refusals make canopyd stop and keep the token: it goes on on demand, so `settle` asks as a user would.
FAULTS = {
    "no refresh token": [{"name": "no-refresh-token"}],
    "429": [{"name": "status-429", "when": when, **wait} for when in ("before", "after")
            for wait in ({"retry_after": "1"}, {"retry_after": "2"}, {"retry_after": "date:2"}, {})],
    "503 with Retry-After": [{"name": "status-503", "when": when, "retry_after": wait} for when in ("before", "after")
                             for wait in ("1", "date:2")],
    "reset": [{"name": "reset", "when": "before"}, {"name": "reset", "when": "after"}, {"name": "answer-lost"},
              {"name": "request-lost"}],
    "408, 5xx": [{"name": f"status-{status}", "when": when} for status in (408, 500, 502, 503, 504)
                 for when in ("before", "after")],
    "2xx that makes no sense": [{"name": "truncated-body"}, {"name": "truncated-json"}, {"name": "huge-body"}] + [
        {"name": name, "when": when} for name in ("html-200", "empty-200", "non-json") for when in ("before", "after")],
    "somebody in between": [{"name": name, "when": when} for name in ("status-302", "status-401-html", "status-403-html")
                            for when in ("before", "after")],
    "refused": [{"name": "echo-body", "when": "before", "status": status} for status in (400, 403, 404, 409, 422)],
    "odd, and rotated": [{"name": "no-expires-in"}],
    "slow": [{"name": "slow", "when": when, "delay_ms": delay} for when in ("before", "after")
             for delay in (50, 300, 1500)],
}
KINDS = {"exchange": 6, "canopyd": 3, "keyring": 1, "all": 1}
PASSWORD = b"soak"


class World:
    def __init__(self, index, options, root):
        self.index, self.options, self.root = index, options, Path(root)
        self.bin = Path(options.bin)
        self.profiles = [f"p{number}" for number in range(1, options.profiles + 1)]
        self.bus = self.keyring = self.sandbox = self.daemon = None
        self.span = 0.1  # Seconds that an exchange takes, as seen lately.
        self.seen = {"rotations": 0, "retries": 0, "family_revocations": 0, "identity_revocations": 0, "backwards": 0}
        run = self.root / "run"
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.root / "home"), "XDG_RUNTIME_DIR": str(run),
            "XDG_DATA_HOME": str(self.root / "data"), "XDG_STATE_HOME": str(self.root / "state"),
            "XDG_CONFIG_HOME": str(self.root / "config"), "XDG_CACHE_HOME": str(self.root / "cache"),
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={run}/bus",
        }
        # An exchange whose canopyd was killed becomes our child, and is found there.
        set_child_subreaper = 36
        ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)

    # Starting and ending

    def start(self):
        self.start_bus()
        self.start_keyring()
        self.start_sandbox("--lifetime", self.options.lifetime, "--identities", len(self.profiles))
        self.start_daemon()
        for profile in self.profiles:
            self.sign_in(profile)

    def start_bus(self):
        for name in ("home", "data", "state", "config", "cache", "run", "run/keyring"):
            (self.root / name).mkdir(mode=0o700, exist_ok=True)
        self.log = open(self.root / "canopyd.log", "ab")
        (self.root / "bus.conf").write_text(
            '<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" '
            '"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd"><busconfig><type>session</type>'
            f"<listen>unix:path={self.root}/run/bus</listen><policy context=\"default\">"
            '<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>')
        self.bus = subprocess.Popen(
            ["dbus-daemon", f"--config-file={self.root}/bus.conf", "--nofork", "--nopidfile"], env=self.environment,
            stderr=subprocess.DEVNULL)
        self.until(self.bus_listens, "the bus")

    def bus_listens(self):
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(self.root / "run/bus"))
            return True
        except OSError:
            return False

    def start_sandbox(self, *options):
        self.sandbox = subprocess.Popen(
            [self.bin / "canopy-sandbox", "--port", "0", "--grace", "10", "--no-throttle", *map(str, options)],
            stdout=open(self.root / "sandbox.log", "wb"))
        self.until(lambda: "native key " in (self.root / "sandbox.log").read_text(), "the sandbox")
        lines = (self.root / "sandbox.log").read_text().splitlines()
        self.url = next(line.split()[1] for line in lines if line.startswith("listening "))
        self.key = next(line.split()[2] for line in lines if line.startswith("native key "))

    def email(self, profile):
        return f"user{profile[1:]}@example.com"

    def sign_in(self, profile):
        status, body = self.ask("POST", f"/v1/profiles/{profile}/login", {
            "url": self.url, "publishable_key": self.key, "email": self.email(profile),
            "password": f"password of user{profile[1:]}"}, timeout=60)
        if status != 200:
            raise SystemExit(f"soak: sign-in of {profile} answered {status}: {body}")

    def start_keyring(self):
        self.keyring = subprocess.Popen(
            ["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets",
             f"--control-directory={self.root}/run/keyring"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=self.environment)
        self.keyring.stdin.write(PASSWORD)
        self.keyring.stdin.close()
        self.until(self.keyring_answers, "the keyring")

    def keyring_answers(self):
        answer = subprocess.run(
            ["dbus-send", "--session", "--print-reply=literal", "--dest=org.freedesktop.DBus", "/",
             "org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets"],
            env=self.environment, capture_output=True, text=True)
        return "boolean true" in answer.stdout

    def start_daemon(self):
        self.daemon = subprocess.Popen([self.bin / "canopyd"], stderr=self.log, env=self.environment)
        self.until(self.daemon_answers, "canopyd")

    def daemon_answers(self):
        try:
            return self.ask("GET", "/v1/status", timeout=2)[0] == 200
        except OSError:
            return False

    def finish(self):
        ours = [process for process in (self.daemon, self.sandbox, self.keyring, self.bus) if process]
        for process in ours:
            process.terminate()
        for process in ours:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for exchange in self.exchanges():
            os.kill(exchange, signal.SIGKILL)

    def until(self, fact, what, seconds=60):
        end = time.monotonic() + seconds
        while not fact():
            if time.monotonic() > end:
                raise SystemExit(f"soak: {what} did not come within {seconds} s; see {self.root}")
            time.sleep(0.01)

    # Talking

    def ask(self, method, path, body=None, timeout=5):
        connection = UnixConnection(str(self.root / "run/canopyd/agent.sock"), timeout)
        try:
            connection.request(method, path, json.dumps(body) if body else None)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        except http.client.HTTPException as error:
            raise OSError(str(error))
        finally:
            connection.close()

    def admin(self, method, path, body=None):
        end = time.monotonic() + 20
        while True:
            connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=20)
            try:
                connection.request(method, path, json.dumps(body) if body is not None else None,
                                   {"Content-Type": "application/json"})
                answer = connection.getresponse()
                text = answer.read()
                break
            except (ConnectionRefusedError, ConnectionResetError):
                # As it was told to: what had not been accepted is reset.
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
            finally:
                connection.close()
        if answer.status >= 300:
            raise SystemExit(f"soak: {method} {path} of the sandbox answered {answer.status}: {text.decode()}")
        return json.loads(text) if text else None

    def demand(self, profile):
        """Asks for a rotation and does not wait for it: it is to be met in the middle."""
        try:
            self.ask("POST", f"/v1/profiles/{profile}/refresh?timeout=0", timeout=2)
        except OSError:
            pass  # canopyd may be dead.

    # Looking

    def exchanges(self):
        """Those of our canopyd, and those that outlived theirs."""
        found = []
        for parent in (self.daemon.pid, os.getpid()):
            try:
                children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            except OSError:
                continue
            for child in map(int, children):
                try:
                    if not Path(f"/proc/{child}/comm").read_text().startswith("canopyd-exchang"):
                        continue
                    if parent == os.getpid() and os.waitpid(child, os.WNOHANG)[0] == child:
                        continue
                except (OSError, ChildProcessError):
                    continue
                found.append(child)
        return found

    def where(self, exchange):
        """How far an exchange is, from its open files."""
        process = f"/proc/{exchange}"
        try:
            files = {name: os.readlink(f"{process}/fd/{name}") for name in os.listdir(f"{process}/fd")}
            lock = next((path for path in files.values() if path.endswith(".lock")), None)
            if "memfd:" not in files.get("4", ""):
                return "loading"
            if not lock:
                return "starting"
            ticks = int(Path(f"{process}/stat").read_text().rsplit(")", 1)[1].split()[19])
            slot = os.stat(f"{process}/fd/4")
            if slot.st_size > 0:
                return "successor in the slot"
            began = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
            if slot.st_mtime > began:
                return "stored"
            connections = {line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]}
            if any(path[8:-1] in connections for path in files.values() if path.startswith("socket:[")):
                return "request in flight"
            state = Path(lock).with_suffix(".json")
            return "marked" if state.exists() and state.stat().st_mtime > began else "reading"
        except PermissionError:
            return "unseen"
        except OSError:
            return "over"

    # A round

    def round(self, number, quota):
        """Kills for a while, then lets every session come to rest; returns the account of it."""
        self.chance = random.Random(f"{self.options.seed}/{self.index}/{number}")
        self.account = {"world": self.index, "round": number, "kills": {}, "where": {}, "faults": {}, "lost": []}
        self.story = []
        began = time.monotonic()
        if self.chance.random() < 0.1:
            # A server that takes the request and never answers: 30 s. The first thing that meets a session at rest, and
            # without effect, or the time alone would take it beyond the grace.
            self.plan("timeout", {"name": "silence", "when": "before",
                                  "identity": self.email(self.chance.choice(self.profiles))})
        done = 0
        while done < quota and time.monotonic() - began < self.options.pressure:
            done += self.strike()
        self.account["pressure"] = round(time.monotonic() - began, 2)
        self.settle()
        self.account["seconds"] = round(time.monotonic() - began, 2)
        return self.account

    def plan(self, row, fault):
        self.account["faults"][row] = self.account["faults"].get(row, 0) + 1
        self.story.append((round(time.time(), 3), f"{row}: {json.dumps(fault)}"))
        if row == "refused connections":
            self.admin("POST", "/admin/refuse", fault)
        else:
            self.admin("POST", "/admin/faults", fault)

    def strike(self):
        if self.chance.random() < 0.35:
            row = self.chance.choice(["refused connections"] + list(FAULTS))
            self.plan(row, {"milliseconds": self.chance.randint(100, 1000)} if row == "refused connections"
                      else self.chance.choice(FAULTS[row]))
        if self.chance.random() < 0.9:
            if self.chance.random() < 0.5:
                # On loopback the answer is there at once, and nothing would be hit while it is awaited.
                self.admin("POST", "/admin/faults", {"name": "slow", "delay_ms": self.chance.randint(5, 100)})
            for profile in self.chance.sample(self.profiles, 2):
                self.demand(profile)
            end = time.monotonic() + 0.2
            while not self.exchanges() and time.monotonic() < end:
                time.sleep(0.002)
        time.sleep(self.chance.random() * 1.2 * self.span)
        kind = self.chance.choices(list(KINDS), weights=list(KINDS.values()))[0]
        exchanges = self.exchanges()
        if kind == "exchange":
            if not exchanges:
                return 0
            # Those that only read after a start would be hit most, and have the least to lose.
            rotating = [exchange for exchange in exchanges if self.where(exchange) != "loading"]
            exchanges = [self.chance.choice(rotating if rotating and self.chance.random() < 0.8 else exchanges)]
        victims = list(exchanges) if kind in ("exchange", "all") else []
        if kind in ("canopyd", "all"):
            victims.append(self.daemon.pid)
        if kind in ("keyring", "all"):
            victims.append(self.keyring.pid)
        self.chance.shuffle(victims)
        places = self.kill(victims, exchanges) or ["at rest"]
        if kind == "exchange" and places == ["over"]:
            return 0  # It was quicker.
        self.account["kills"][kind] = self.account["kills"].get(kind, 0) + 1
        for place in places:
            key = f"{kind}: {place}"
            self.account["where"][key] = self.account["where"].get(key, 0) + 1
        self.story.append((round(time.time(), 3), f"killed {kind}: {', '.join(places)}"))
        if kind in ("keyring", "all"):
            self.keyring.wait()
            self.start_keyring()
        if kind in ("canopyd", "all"):
            self.daemon.wait()
            self.start_daemon()
        return 1

    def kill(self, victims, exchanges):
        """Kills all of them at once; returns how far the exchanges were."""
        # By descriptors: an exchange may end meanwhile, and its number become somebody else's.
        held = {}
        for victim in victims:
            try:
                held[victim] = os.pidfd_open(victim)
            except ProcessLookupError:
                pass
        alive = self.exchanges() + [self.daemon.pid, self.keyring.pid]
        places = set()
        # Stopped, then looked at, then killed: for the victim it is the same microsecond.
        for signal_ in (signal.SIGSTOP, signal.SIGKILL):
            for victim, descriptor in held.items():
                try:
                    if victim in alive:
                        signal.pidfd_send_signal(descriptor, signal_)
                except ProcessLookupError:
                    pass
            places = places or {self.where(exchange) for exchange in exchanges}
        for descriptor in held.values():
            os.close(descriptor)
        return sorted(places)

    def settle(self):
        """Until canopyd has, of every session, what the server issued last."""
        self.admin("DELETE", "/admin/faults")
        self.story.append((round(time.time(), 3), "calm"))
        restless, asked = set(self.profiles), {}
        end = time.monotonic() + 60
        while restless and time.monotonic() < end:
            families = {family["email"]: family for family in self.admin("GET", "/admin/counters")["families"]}
            for view in self.ask("GET", "/v1/profiles")[1]["profiles"]:
                profile, now = view["profile"], time.monotonic()
                family = families[self.email(profile)]
                if view["state"] == "signin_required":
                    self.lose(profile, view.get("reason"))
                    restless.discard(profile)
                elif view["generation"] == family["generation"] and family["alive"]:
                    restless.discard(profile)
                elif view["state"] == "refused" and now - asked.get(profile, 0) > 1:
                    asked[profile] = now
                    self.demand(profile)
            self.measure()
            time.sleep(0.1)
        for profile in restless:
            self.lose(profile, "it does not come to rest")
        self.count()

    def measure(self):
        """How long an exchange takes now, so that kills hit all of it."""
        running = self.exchanges()
        if not running:
            return
        exchange, began = running[-1], time.monotonic()
        while exchange in self.exchanges():
            if time.monotonic() - began > 0.5:
                return  # It waits for a server that is silent, or slow.
            time.sleep(0.005)
        # It was met in the middle.
        self.span = max(0.04, 0.8 * self.span + 0.2 * 2 * (time.monotonic() - began))

    def lose(self, profile, reason):
        """Writes down all there is to know, and goes on with a new sign-in."""
        family = [family for family in self.admin("GET", "/admin/state")["families"]
                  if family["email"] == self.email(profile)][-1]
        family["arrived"] = family["arrived"][-8:]
        family["presented"] = family["presented"][-8:]
        self.account["lost"].append({
            "profile": profile, "reason": reason, "view": self.ask("GET", f"/v1/profiles/{profile}")[1],
            "family": family, "story": self.story,
            "log": (self.root / "canopyd.log").read_text().splitlines()[-60:]})
        self.sign_in(profile)

    def count(self):
        state = self.admin("GET", "/admin/counters")
        families = state["families"]
        total = {
            "rotations": sum(family["generation"] for family in families),
            "retries": sum(family["harmless_retries"] for family in families),
            "family_revocations": state["family_revocations"], "identity_revocations": state["identity_revocations"],
            "backwards": sum(max(family["generations_presented_backwards"], family["generations_arrived_backwards"])
                             for family in families),
        }
        for name, value in total.items():
            self.account[name] = value - self.seen[name]
        self.seen = total
        self.account["in_flight"] = max(family["maximum_in_flight"] for family in families)
