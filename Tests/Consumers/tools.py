"""Tools that have a format of their own for those who give them credentials."""
import hashlib, json, os, re, subprocess
from pathlib import Path
from consumer import Consumer
from documents import example, replaced
from services import Git, Kubernetes, Registry, Web
from stage import Failure, until


class GitClone(Consumer):
    name = "git"
    programs = ["git"]

    def prepare(self):
        self.service = Web(Git)
        self.door = self.service.door
        self.service.directory = self.directory / "served"
        self.repository = self.service.directory / "team/tool.git"
        self.number = 0
        self.home = self.directory / "home"
        self.home.mkdir()
        self.environment = {"HOME": str(self.home), "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"}
        self.git("init", "--quiet", "--bare", "--initial-branch=main", self.repository)
        self.stage.succeed("bash", "-euc", replaced(
            example("docs/integrations.md", "sh", "git config --global credential."), {
                "https://git.example.com": self.service.url,
                "canopyctl git-credential": f"canopyctl git-credential --profile {self.profile}"}),
            environment=self.environment)
        for name, value in {"user.name": "Ada", "user.email": "ada@example.com"}.items():
            self.git("config", "--global", name, value)

    def git(self, *words):
        return self.stage.succeed("git", *words, environment=self.environment)

    def use(self):
        """Clones, and pushes: the first asks for a credential, the second shows it with a body."""
        self.number += 1
        place = self.directory / f"clone{self.number}"
        for command in [
            ["clone", "--quiet", f"{self.service.url}/team/tool.git", place],
            ["-C", place, "checkout", "--quiet", "-B", "main"],
            ["-C", place, "commit", "--quiet", "--allow-empty", "--message", f"number {self.number}"],
            ["-C", place, "push", "--quiet", "origin", "main"],
        ]:
            ended = self.stage.run("git", *command, environment=self.environment)
            if ended[0] != 0:
                return ended
        return ended

    def extras(self):
        return [("is asked to store and erase credentials, and nothing changes or leaks", self.nothing_changes)]

    def nothing_changes(self):
        if int(self.git("-C", self.repository, "rev-list", "--count", "main")) != self.number:
            raise Failure("not every push arrived")
        before = self.state()
        token = self.stage.token(self.profile)["access_token"]
        credential = f"protocol=http\nhost=127.0.0.1:{self.service.port}\nusername=oauth2\npassword={token}\n\n"
        for action in ["approve", "reject"]:
            # What git does after a success and after a 401; its own trace names the helper's action. With no canopyd to
            # ask: there is nothing that would have to be told.
            status, output, words = self.stage.run("git", "credential", action, input=credential, environment={
                **self.environment, "GIT_TRACE": "1", "CANOPYD_SOCKET": "/nowhere/agent.sock"})
            named = {"approve": "store", "reject": "erase"}[action]
            if status != 0 or output or f"git-credential --profile {self.profile} {named}" not in words:
                raise Failure(f"git credential {action} ended with {status}: {output}{words}")
            if "canopyctl:" in words:
                raise Failure(f"{named} has asked canopyd: {words}")
        # A server that refuses the token has git erase it, and says so; canopyd keeps the session.
        self.door.accepted = set()
        status, _, words = self.stage.run(
            "git", "ls-remote", f"{self.service.url}/team/tool.git",
            environment={**self.environment, "GIT_TRACE": "1"})
        if status == 0 or "git-credential --profile git erase" not in words:
            raise Failure(f"git has not erased what was refused: {words}")
        after = self.state()
        if before != after:
            raise Failure("what canopyd, the keyring or the disk holds has changed: " + ", ".join(
                name for name in before if before[name] != after[name]))
        self.leaks(token)

    def state(self):
        """What must be as it was: canopyd's view, what it keeps of this profile, and the home that git writes to."""
        known = [path for path in Path(os.environ["XDG_STATE_HOME"]).rglob("*") if self.profile in path.name]
        if not known:
            raise Failure(f"the state directory has nothing of {self.profile}")
        files = {str(path): hashlib.sha256(path.read_bytes()).hexdigest()
                 for path in [*known, *self.home.rglob("*")] if path.is_file()}
        keyring = self.stage.run(
            "secret-tool", "search", "--all", "xdg:schema", "com.canopy-io.canopyd.session", "profile", self.profile)
        if self.profile not in keyring[1] + keyring[2]:
            raise Failure(f"the keyring has no item of {self.profile}: {keyring[2]}")
        return {"profile": self.stage.expect("GET", f"/v1/profiles/{self.profile}"), "files": files,
                "keyring": hashlib.sha256("".join(keyring[1:]).encode()).hexdigest()}

    def leaks(self, token):
        """The token is in no file of git's, nor of the working copies."""
        for path in [*self.home.rglob("*"), *self.directory.glob("clone*/**/*")]:
            if path.is_file() and token.encode() in path.read_bytes():
                raise Failure(f"the token is in {path}")


class Kubectl(Consumer):
    name = "kubectl"
    programs = ["kubectl"]

    def prepare(self):
        self.service = Web(Kubernetes, self.files)
        self.door = self.service.door
        text = self.stage.succeed("kubectl", "version", "--client", "--output=json")
        minor = int(re.match(r"\d+", json.loads(text)["clientVersion"]["minor"])[0])
        # v1 of the format came with 1.22; Debian 12 has 1.20.
        self.version = "v1" if minor >= 22 else "v1beta1"
        self.configuration = self.directory / "config"
        self.write(self.service, self.profile, self.configuration)

    def write(self, service, profile, path):
        user = replaced(example("docs/integrations.md", "yaml", "users:"), {
            "[kube-credential]": f"[kube-credential, --profile, {profile}]"})
        if self.version != "v1":
            # As the page says.
            user = replaced(user, {"k8s.io/v1": f"k8s.io/{self.version}", "      interactiveMode: Never\n": ""})
        path.write_text(f"""apiVersion: v1
kind: Config
current-context: here
clusters:
- name: here
  cluster: {{server: "{service.url}", certificate-authority: "{self.files[0]}"}}
contexts:
- name: here
  context: {{cluster: here, user: canopy}}
{user}""")

    def kubectl(self, configuration, *words):
        return ["kubectl", "--kubeconfig", configuration, "--cache-dir", self.directory / "cache", *words]

    def use(self):
        return self.stage.run(*self.kubectl(
            self.configuration, "get", "configmap", "greeting", "--output=jsonpath={.data.hello}"))

    def extras(self):
        return [("asks again by itself at our refresh point", self.asks_again)]

    def asks_again(self):
        """A kubectl that runs on shows the next token though nobody has turned it away: because it is time."""
        server = self.stage.start_server(lifetime=12, identities=1)
        profile = "kubectl-short"
        self.stage.sign_in(profile, server, 1)
        service = Web(Kubernetes, self.files)
        configuration = self.directory / "short"
        self.write(service, profile, configuration)
        said = json.loads(self.stage.succeed("canopyctl", "kube-credential", "--profile", profile))
        if said["status"]["expirationTimestamp"] != self.stage.token(profile)["refresh_at"]:
            raise Failure("expirationTimestamp is not the time at which canopyd means to rotate")
        # Before kubectl starts: some look at the server's version first.
        service.door.accepted = Given(self.stage, profile)
        proxy = subprocess.Popen(
            [str(word) for word in self.kubectl(configuration, "proxy", "--port=0")], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        try:
            port = re.search(r":(\d+)$", proxy.stdout.readline().strip())
            if not port:
                raise Failure("kubectl proxy does not start")
            def next_one():
                self.stage.succeed("curl", "-fsS", f"http://127.0.0.1:{port[1]}/version")
                return len(set(service.door.let_in)) > 1
            until("another token of kubectl's", next_one)
            if service.door.turned_away:
                raise Failure("kubectl was turned away")
        finally:
            proxy.terminate()
            proxy.wait()


class Given:
    """Every token of a profile that was handed out: who shows another one was not told to by its being refused."""

    def __init__(self, stage, profile):
        self.stage, self.profile, self.tokens = stage, profile, set()

    def __contains__(self, token):
        self.tokens.add(self.stage.token(self.profile)["access_token"])
        return token in self.tokens


class Skopeo(Consumer):
    name = "skopeo"
    programs = ["skopeo"]

    def prepare(self):
        self.service = Web(Registry)
        self.service.names = set()
        self.door = self.service.door
        self.number = 0
        # A script in the link's place gives what the tool's configuration cannot: here the profile.
        self.home = self.directory / "home"
        programs = self.home / ".local/bin"
        programs.mkdir(parents=True)
        script = replaced(example("docs/integrations.md", "sh", "cat >~/.local/bin/docker-credential-canopy-work"), {
            "docker-credential-canopy-work": "docker-credential-canopy", "--profile work": f"--profile {self.profile}"})
        self.environment = {
            "HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / ".config"),
            "PATH": f"{programs}:{os.environ['PATH']}"}
        self.stage.succeed("bash", "-euc", script, environment=self.environment)
        (self.home / ".docker").mkdir()
        (self.home / ".docker/config.json").write_text(replaced(
            example("docs/integrations.md", "json", '{"credHelpers"'), {
                "registry.example.com": f"127.0.0.1:{self.service.port}"}))

    def skopeo(self, *words, **options):
        return self.stage.run("skopeo", "--insecure-policy", *words, environment=self.environment, **options)

    def use(self):
        self.number += 1
        return self.skopeo(
            "copy", "--src-tls-verify=false", f"docker://127.0.0.1:{self.service.port}/team/tool:1",
            f"dir:{self.directory}/image{self.number}")

    def extras(self):
        return [("gives the user name, and stores no other credential", self.stores_nothing),
                ("takes the helper under its own name, as a link", self.linked)]

    def stores_nothing(self):
        if self.service.names != {"_token"}:
            raise Failure(f"the user names were {self.service.names}")
        self.door.accepted = {"hunter2"}
        status, output, words = self.skopeo(
            "login", "--tls-verify=false", "--authfile", self.home / ".docker/config.json",
            "--username", "ada", "--password-stdin", f"127.0.0.1:{self.service.port}", input="hunter2")
        if status == 0 or "stores no other credential" not in output + words:
            raise Failure(f"skopeo login ended with {status}: {output}{words}")
        for path in self.home.rglob("*"):
            if path.is_file() and b"hunter2" in path.read_bytes():
                raise Failure(f"the password is in {path}")
        kept = self.stage.expect("GET", f"/v1/profiles/{self.profile}")
        if kept["state"] != "active":
            raise Failure(f"the profile is {kept['state']}")

    def linked(self):
        home = self.directory / "other"
        (home / ".local/bin").mkdir(parents=True)
        block = example("docs/integrations.md", "sh", 'ln -sf "$(command -v canopyctl)"')
        self.stage.succeed("bash", "-euc", block, environment={"HOME": str(home)})
        link = home / ".local/bin/docker-credential-canopy"
        output = self.stage.succeed(
            link, "get", input="registry.example.com\n", environment={"CANOPY_PROFILE": self.profile})
        answer = json.loads(output)
        if answer != {"ServerURL": "registry.example.com", "Username": "oauth2",
                      "Secret": self.stage.token(self.profile)["access_token"]}:
            raise Failure(f"the answer has {sorted(answer)}")


CONSUMERS = [GitClone, Kubectl, Skopeo]
