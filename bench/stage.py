"""A desktop with a sandbox and a canopyd on it, for what is measured of the release build."""
import json, os, re, socket, subprocess, sys, time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "scripts"))

from unix_connection import UnixConnection

RELEASE = ROOT / ".build" / "release"
# The programs as they are installed, which is what is measured: without their symbols, and written from one end to the
# other. A file that the linker has written, page here and page there, lies in small pieces in the page cache, and mapping
# them adds a fifth to each start.
INSTALLED = ROOT / ".build" / "bench" / "installed"
PRODUCTS = ["canopyd", "canopyd-exchange", "canopyctl", "canopy-sandbox"]
PACKAGES = [
    "libsecret-1-dev", "libsystemd-dev", "libcurl4-openssl-dev", "pkg-config", "gnome-keyring", "dbus-daemon", "dbus-bin"]


def build(*more_packages):
    subprocess.run([ROOT / "scripts" / "install-missing", *PACKAGES, *more_packages], check=True)
    for product in PRODUCTS:
        subprocess.run(
            ["swift", "build", "-c", "release", "--static-swift-stdlib", "--product", product], cwd=ROOT, check=True,
            stdout=sys.stderr)
    INSTALLED.mkdir(parents=True, exist_ok=True)
    for product in PRODUCTS:
        subprocess.run(["strip", "-o", INSTALLED / product, RELEASE / product], check=True)


def enter_desktop(script):
    """Runs the script again, with --inside, on a bus and with a keyring of its own."""
    with_keyring = str(ROOT / "scripts" / "with-keyring")
    os.execv(with_keyring, [with_keyring, str(Path(script).resolve()), *sys.argv[1:], "--inside"])


def request(path, method, target, body=None):
    connection = UnixConnection(path, 60)
    connection.request(method, target, json.dumps(body) if body else None)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"{method} {target}: {answer.status} {text.decode(errors='replace')}")
    return text


def listens(path):
    """Whether somebody does: a socket is bound before it listens."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
            return True
        except OSError:
            return False


def until(what, condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"{what} did not happen within {seconds} s")
        time.sleep(0.02)


class Stage:
    def __init__(self, programs=INSTALLED):
        self.programs = programs
        self.runtime = Path(os.environ["XDG_RUNTIME_DIR"])
        self.socket = str(self.runtime / "canopyd" / "agent.sock")
        self.work = self.runtime / "bench"
        self.work.mkdir(mode=0o700)
        self.processes = []

    # --- Processes

    def spawn(self, *command, log, **rest):
        process = subprocess.Popen(
            [str(word) for word in command], stdout=open(self.work / log, "w"), stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, **rest)
        self.processes.append(process)
        return process

    def end(self, process):
        self.processes.remove(process)
        process.terminate()
        process.wait()

    def close(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start_sandbox(self):
        # Tokens that outlive the run: what is measured is serving, not rotating.
        self.spawn(
            self.programs / "canopy-sandbox", "--lifetime", "86400", "--no-throttle", "--no-history", log="sandbox.log")
        log = self.work / "sandbox.log"
        until("the sandbox's start", lambda: re.search(r"^identity", log.read_text(), re.M))
        text = log.read_text()
        self.url = re.search(r"^listening (\S+)", text, re.M)[1]
        self.key = re.search(r"^native key (\S+)", text, re.M)[1]
        self.email, self.password = re.search(r"^identity (\S+) password (.*)$", text, re.M).groups()

    def start_canopyd(self, *under):
        """Starts it, under another program if one is named, and returns when it serves."""
        process = self.spawn(*under, self.programs / "canopyd", log="canopyd.log")

        def serves():
            try:
                request(self.socket, "GET", "/v1/status")
                return True
            except OSError:
                if process.poll() is not None:
                    raise SystemExit((self.work / "canopyd.log").read_text())
                return False

        until("canopyd's start", serves, 120)
        return process

    def sign_in(self, profile):
        request(self.socket, "POST", f"/v1/profiles/{profile}/login", {
            "url": self.url, "publishable_key": self.key, "email": self.email, "password": self.password})
