"""A Secret Service, a server and a canopyd, and what is asked of the three together: see scripts/services."""
import os, re, signal, subprocess, time
from pathlib import Path
from types import SimpleNamespace

from soak_world import World


class Failed(Exception):
    """A check that did not hold."""


def promised(seconds):
    """The time within which users are promised something: of a machine that has some, so it is as much longer as there
    are programs for each processor, of late or now; as in the tests of Swift's."""
    load, _, _, programs, _ = Path("/proc/loadavg").read_text().split()
    return seconds * max(1, max(float(load), float(programs.split("/")[0])) / os.cpu_count())


class ServiceWorld(World):
    def __init__(self, kind, root, bin, lifetime=120, sandbox=()):
        super().__init__(0, SimpleNamespace(bin=bin, profiles=0, lifetime=lifetime), root)
        self.kind, self.lifetime, self.sandbox_options = kind, lifetime, sandbox
        self.numbers, self.expected, self.monitor, self.service = {}, set(), None, None
        self.made = 0  # Items that were made, at the most.

    # Starting and ending

    def start(self, **how):
        self.start_bus()
        self.start_monitor()
        self.service = self.kind(self.environment, self.root)
        self.service.start(**how)
        self.start_sandbox("--lifetime", self.lifetime, "--identities", 40, *self.sandbox_options)
        self.start_daemon()
        return self

    def start_monitor(self):
        """Whoever is asked to raise a prompt, or to make a collection, which asks for a password, is seen here."""
        self.monitor = subprocess.Popen(
            ["dbus-monitor", "--address", self.environment["DBUS_SESSION_BUS_ADDRESS"],
             "type='method_call',interface='org.freedesktop.Secret.Prompt',member='Prompt'",
             "type='method_call',interface='org.freedesktop.Secret.Service',member='CreateCollection'"],
            stdout=open(self.root / "prompts.log", "wb"), stderr=subprocess.DEVNULL)
        self.until(lambda: (self.root / "prompts.log").stat().st_size > 0, "the monitor")

    def finish(self):
        if self.daemon:
            self.daemon.kill()
            for exchange in self.exchanges():
                os.kill(exchange, signal.SIGKILL)
        if self.service and self.service.process:
            self.service.kill()
        for process in (self.sandbox, self.monitor, self.bus):
            if process:
                process.terminate()
                process.wait(20)

    def stop_daemon(self):
        if self.daemon.poll() is None:
            self.daemon.terminate()
        try:
            self.daemon.wait(60)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()
            raise Failed("canopyd did not stop within 60 s")

    def kill_daemon(self):
        self.daemon.kill()
        self.daemon.wait()

    def restart_daemon(self):
        self.stop_daemon()
        self.start_daemon()

    def restart_service(self, **how):
        self.service.kill()
        self.service.start(**how)

    # Asking

    def email(self, profile):
        number = self.numbers.setdefault(profile, len(self.numbers) + 1)
        return f"user{number}@example.com"

    def log_in(self, profile, timeout=60):
        """The status and the body that a sign-in is answered with."""
        email = self.email(profile)
        answer = self.ask("POST", f"/v1/profiles/{profile}/login", {
            "url": self.url, "publishable_key": self.key, "email": email,
            "password": f"password of {email.split('@')[0]}"}, timeout=timeout)
        if answer[0] == 200:
            self.made += 1
            self.expected.add(profile)
        return answer

    def sign_in(self, *profiles):
        for profile in profiles:
            status, body = self.log_in(profile)
            if status != 200:
                raise Failed(f"the sign-in of {profile} was answered {status}: {words(body)}")

    def view(self, profile):
        return self.ask("GET", f"/v1/profiles/{profile}")[1]

    def token(self, profile, timeout=10):
        status, body = self.ask("GET", f"/v1/token?profile={profile}&timeout={timeout}", timeout=timeout + 10)
        return body["access_token"] if status == 200 else body.get("code")

    def refresh(self, profile, timeout=30):
        return self.ask("POST", f"/v1/profiles/{profile}/refresh?timeout={timeout}", timeout=timeout + 10)

    def family(self, profile):
        return [family for family in self.admin("GET", "/admin/counters")["families"]
                if family["email"] == self.email(profile)][-1]

    def requests(self, *profiles):
        """How many refreshes of these the server has seen."""
        return sum(self.family(profile)["refresh_requests"] for profile in profiles)

    def full_slots(self):
        """How many successor slots of canopyd's hold something."""
        count = 0
        for name in Path(f"/proc/{self.daemon.pid}/fd").iterdir():
            try:
                if "memfd:canopyd-successor" in os.readlink(name) and os.stat(name).st_size > 0:
                    count += 1
            except OSError:
                pass
        return count

    # Waiting

    def wait(self, fact, what, seconds=20):
        """Until the fact, which is tried each twentieth of a second; how long it took."""
        began = time.monotonic()
        while not fact():
            if time.monotonic() - began > seconds:
                raise Failed(f"{what}: not within {seconds} s")
            time.sleep(0.05)
        return time.monotonic() - began

    def wait_state(self, profile, *states, seconds=20):
        try:
            return self.wait(lambda: self.view(profile).get("state") in states, "", seconds)
        except Failed:
            view = self.view(profile)
            error = (view.get("last_error") or {}).get("detail", "")
            raise Failed(f"{profile} is {view.get('state')} ({view.get('reason') or error}) and not "
                         f"{' or '.join(states)} after {seconds} s")

    def wait_settled(self, seconds=60):
        """Until nothing waits for the keyring any more."""
        self.wait(lambda: self.full_slots() == 0 and not self.exchanges(), "a successor slot is emptied", seconds)

    def rotate(self, *profiles):
        """Rotates each once, as soon as it may be, side by side."""
        before = {profile: self.family(profile)["generation"] for profile in profiles}

        def done():
            rest = [profile for profile in before if self.view(profile)["generation"] <= before[profile]]
            for profile in rest:
                self.demand(profile)
            time.sleep(0.1)
            return not rest
        self.wait(done, f"a rotation of {', '.join(profiles)}", 25 + self.kind.late)

    def hold(self, profile):
        """Starts a rotation whose answer the server has ready, and keeps until it is released."""
        self.admin("POST", "/admin/faults", {"name": "hold", "when": "after", "identity": self.email(profile)})
        self.wait(lambda: self.demand(profile) or self.admin("GET", "/admin/counters")["held"] == 1,
                  "a rotation begins", 25 + self.kind.late)

    def release(self):
        self.admin("POST", "/admin/release", {})

    # Judging

    def prompts(self):
        """The calls that would have asked somebody."""
        calls = re.findall(r"sender=(\S+) .* member=(Prompt|CreateCollection)", (self.root / "prompts.log").read_text())
        return [call for sender, call in calls if sender not in self.service.persons]

    def judge(self):
        """The server's news of every session that is expected to live, and canopyd's own."""
        for profile in sorted(self.expected):
            self.wait_state(profile, "active", seconds=30)
            family = self.family(profile)
            self.wait(lambda: self.view(profile)["generation"] == self.family(profile)["generation"],
                      f"{profile} has what the server issued last", 10)
            if not family["alive"]:
                raise Failed(f"the session of {profile} is over: {family.get('ending')}")
        state = self.admin("GET", "/admin/counters")
        for family in state["families"]:
            if family["maximum_in_flight"] > 1:
                raise Failed(f"{family['maximum_in_flight']} requests of one session were in flight at once")
            if family["generations_presented_backwards"] or family["generations_arrived_backwards"]:
                raise Failed("an older refresh token came after a newer one")
        if state["family_revocations"] or state["identity_revocations"]:
            raise Failed(f"{state['family_revocations']} sessions and {state['identity_revocations']} identities were "
                         "revoked for a token that came again")
        prompts = self.prompts()
        if self.kind.prompts_for_items and len(prompts) <= self.made and set(prompts) <= {"Prompt"}:
            return
        if prompts:
            raise Failed(f"somebody was asked: {', '.join(prompts)}")


def words(body):
    return f"{body.get('code')}: {body.get('detail')}" if isinstance(body, dict) else str(body)
