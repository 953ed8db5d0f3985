"""A canopyd with a server, for programs that are not ours; bus, keyring and home are scripts/with-keyring's."""
import http.client, json, os, re, shutil, subprocess, sys, time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from unix_connection import UnixConnection

PROGRAMS = ["canopyd", "canopyd-exchange", "canopyctl", "canopy-sandbox"]


class Failure(Exception):
    """What did not come out as it should; its text is for people, and without the tokens that a program may have shown."""

    def __str__(self):
        return re.sub(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "(a token)", super().__str__())


def enter(script, directory):
    """Runs the script again, with --inside, on a desktop of its own, with canopyd's programs in `directory`."""
    for program in PROGRAMS:
        if not os.access(directory / program, os.X_OK):
            subprocess.run(["swift", "build", "--product", program], cwd=ROOT, check=True, stdout=sys.stderr)
    os.environ["CANOPYD_BUILD"] = str(directory)
    with_keyring = str(ROOT / "scripts/with-keyring")
    os.execv(with_keyring, [with_keyring, str(Path(script).resolve()), "--inside", *sys.argv[1:]])


def until(what, condition, seconds=60):
    """Waits for a condition, and returns what it said; the deadline is for a machine that is busy."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise Failure(f"{what} did not come within {seconds} s")
        time.sleep(0.05)


class Server:
    """A canopy-sandbox, with as many identities as are asked for, userN@example.com."""

    def __init__(self, programs, lifetime, identities, log):
        self.log = log
        self.process = subprocess.Popen(
            [programs / "canopy-sandbox", "--lifetime", str(lifetime), "--identities", str(identities), "--no-throttle"],
            stdin=subprocess.DEVNULL, stdout=open(log, "w"), stderr=subprocess.STDOUT)
        until("the sandbox", lambda: f"user{identities}@" in log.read_text() or self.process.poll() is not None)
        text = log.read_text()
        self.url = re.search(r"^listening (\S+)", text, re.M)[1]
        self.key = re.search(r"^native key (\S+)", text, re.M)[1]

    def admin(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=60)
        connection.request(method, path, json.dumps(body) if body is not None else None)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if answer.status >= 300:
            raise Failure(f"{method} {path} of the sandbox: {answer.status} {text}")
        return json.loads(text) if text else None


class Stage:
    """canopyd, as the user's programs find it. Each program has a profile, and so a session, of its own."""

    def __init__(self):
        self.programs = Path(os.environ["CANOPYD_BUILD"])
        self.runtime = Path(os.environ["XDG_RUNTIME_DIR"])
        self.work = self.runtime / "work"
        self.work.mkdir(mode=0o700)
        self.servers, self.emails, self.identities = [], {}, 0
        # What a user has in the path, and nothing of where it was built.
        self.bin = self.runtime / "bin"
        self.bin.mkdir(mode=0o700)
        for program in ["canopyd", "canopyctl"]:
            (self.bin / program).symlink_to(self.programs / program)
        os.environ["PATH"] = f"{self.bin}:{os.environ['PATH']}"
        self.socket = str(self.runtime / "canopyd/agent.sock")
        self.daemon = subprocess.Popen(
            [self.programs / "canopyd"], stdin=subprocess.DEVNULL, stderr=open(self.work / "canopyd.log", "w"))
        until("canopyd", self.answers)

    def answers(self):
        if self.daemon.poll() is not None:
            raise Failure((self.work / "canopyd.log").read_text())
        try:
            return self.ask("GET", "/v1/status")[0] == 200
        except OSError:
            return False

    def close(self):
        processes = [self.daemon] + [server.process for server in self.servers]
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start_server(self, lifetime, identities):
        server = Server(self.programs, lifetime, identities, self.work / f"sandbox{len(self.servers)}.log")
        self.servers.append(server)
        return server

    def ask(self, method, target, body=None):
        connection = UnixConnection(self.socket, 60)
        try:
            connection.request(method, target, json.dumps(body) if body else None)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        except http.client.HTTPException as error:
            raise OSError(str(error))
        finally:
            connection.close()

    def expect(self, method, target, body=None):
        status, answer = self.ask(method, target, body)
        if status not in (200, 204):
            raise Failure(f"{method} {target}: {status} {answer}")
        return answer

    # Sessions

    def sign_in(self, profile, server, number):
        email = f"user{number}@example.com"
        self.emails[profile] = (server, email)
        self.expect("POST", f"/v1/profiles/{profile}/login", {
            "url": server.url, "publishable_key": server.key, "email": email, "password": f"password of user{number}"})

    def token(self, profile):
        return self.expect("GET", f"/v1/token?profile={profile}")

    def rotate(self, profile):
        """Until there is another token: within the floor a rotation is not done."""
        before = self.token(profile)

        def rotated():
            now = self.expect("POST", f"/v1/profiles/{profile}/refresh?if_generation={before['generation']}")
            return now["generation"] > before["generation"] and now
        after = until(f"a rotation of {profile}", rotated)
        if after["access_token"] == before["access_token"]:
            raise Failure("the token is the same after a rotation")
        return after

    def revoke(self, profile):
        """Ends the session on the server, and lets canopyd learn it."""
        server, email = self.emails[profile]
        server.admin("POST", "/admin/revoke-identity", {"email": email})

        def learnt():
            status, answer = self.ask("POST", f"/v1/profiles/{profile}/refresh")
            return status == 401 and answer["code"] == "signin_required"
        until(f"the end of {profile}'s session", learnt)

    # Programs

    def run(self, *command, environment=None, input=None, directory=None):
        """Ends with (status, standard output, standard error), as texts."""
        # A session of its own: without the terminal that we may have, where somebody would be asked.
        try:
            ended = subprocess.run(
                [str(word) for word in command], env={**os.environ, **(environment or {})}, cwd=directory or self.work,
                input=input, stdin=None if input is not None else subprocess.DEVNULL, capture_output=True, text=True,
                timeout=90, start_new_session=True)
        except subprocess.TimeoutExpired as hung:
            raise Failure(f"{command[0]} did not end within {hung.timeout} s")
        return ended.returncode, ended.stdout, ended.stderr

    def succeed(self, *command, **options):
        status, output, words = self.run(*command, **options)
        if status != 0:
            raise Failure(f"{command[0]} ended with {status}: {output}{words}")
        return output

    def shell(self, text, **options):
        """As typed at a prompt, but that the first error ends it, in a pipeline too."""
        return self.run("bash", "-euo", "pipefail", "-c", text, **options)


def missing(programs):
    return [program for program in programs if shutil.which(program) is None]
