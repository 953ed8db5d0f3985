"""The Secret Services that people have, and the tests' double, started without a human: see scripts/services."""
import hashlib, json, os, signal, socket, struct, subprocess, sys, time, uuid
from base64 import b64encode
from contextlib import contextmanager
from pathlib import Path

import dbus, dbus.bus

PASSWORD = b"services"
DOUBLE = Path(__file__).resolve().parent.parent / "Tests/MockSecretService/mock-secret-service"
NAME, ROOT = "org.freedesktop.secrets", "/org/freedesktop/secrets"
SERVICE, COLLECTION, ITEM = (f"org.freedesktop.Secret.{part}" for part in ("Service", "Collection", "Item"))
PROPERTIES = "org.freedesktop.DBus.Properties"


class Service:
    """One program behind `org.freedesktop.secrets` on a bus of its own, with one collection that holds a session."""

    # Seconds from a store to the disk, as far as canopyd assumes; none for gnome-keyring.
    late = 0
    # The system calls of a store, on entering each of which it is killed.
    calls_of_a_store = ()
    # The system call of a saving during which a change is passed over.
    slow_call = None
    # Whether it makes an item only by a prompt; one that shows nothing while the collection is open.
    prompts_for_items = False
    # Whether it is known to crash now and then, by no fault of what was asked.
    crashes = False
    # The real one in whose shape a double is, which falls short where that does.
    like = None

    def __init__(self, environment, root):
        self.environment, self.root, self.process = dict(environment), Path(root), None
        self.data, self.log = self.root / "data", open(self.root / "service.log", "ab")
        # Bus names under which the person at the machine, and not canopyd, has answered a prompt.
        self.persons = set()

    # What each kind does its own way

    def start(self, locked=False, bare=False):
        """Starts it, unlocked, or as it is after a login without a password; `bare`: nobody has made a collection."""
        raise NotImplementedError

    def lock(self):
        self.call(ROOT, SERVICE, "Lock", dbus.Array([self.collection()], signature="o"))

    def unlock(self):
        raise NotImplementedError

    def files(self):
        """The folder that a backup would save."""
        raise NotImplementedError

    @classmethod
    def version(cls):
        return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", cls.package], capture_output=True,
                              text=True).stdout.split(":")[-1].split("-")[0].split("+")[0]

    # What all do alike

    @property
    def pid(self):
        return self.process.pid

    def spawn(self, command, **more):
        self.process = subprocess.Popen(command, env=self.environment, stdout=self.log, stderr=self.log, **more)

    def signal(self, number):
        os.kill(self.pid, number)

    def has_crashed(self):
        return self.process.poll() is not None and self.process.returncode != -signal.SIGKILL

    def kill(self):
        """As a crash does it, or the kernel for want of memory."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self):
        """As the end of a login session does it."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def bus(self):
        return dbus.bus.BusConnection(self.environment["DBUS_SESSION_BUS_ADDRESS"])

    def call(self, path, interface, method, *arguments, name=NAME, timeout=10):
        bus = self.bus()
        try:
            return bus.call_blocking(name, path, interface, method, None, arguments, timeout=timeout)
        finally:
            bus.close()

    def answers(self, name=NAME):
        try:
            return bool(self.call("/", "org.freedesktop.DBus", "NameHasOwner", name, name="org.freedesktop.DBus"))
        except dbus.DBusException:
            return False

    def until(self, fact, what, seconds=30):
        end = time.monotonic() + seconds
        while not fact():
            if time.monotonic() > end:
                raise SystemExit(f"services: {what} did not come within {seconds} s; see {self.root}")
            time.sleep(0.02)

    def collection(self):
        return str(self.call(ROOT, SERVICE, "ReadAlias", "default"))

    def is_locked(self):
        return bool(self.call(self.collection(), PROPERTIES, "Get", COLLECTION, "Locked"))

    def has_collection(self):
        try:
            path = self.collection()
            if path == "/":
                return False
            self.call(path, PROPERTIES, "Get", COLLECTION, "Label")
            return True
        except dbus.DBusException:
            return False

    def items(self, **attributes):
        """The items with these attributes, as paths, of an unlocked collection."""
        found = self.call(ROOT, SERVICE, "SearchItems", dbus.Dictionary(attributes, signature="ss"))
        return [str(path) for part in found for path in part]

    def attributes(self, item):
        return {str(key): str(value) for key, value in self.call(item, PROPERTIES, "Get", ITEM, "Attributes").items()}

    def delete(self, item):
        return self.call(item, ITEM, "Delete")

    def reset(self):
        """Everything in it is gone."""
        for item in self.items(**{"xdg:schema": "com.canopy-io.canopyd.session"}):
            self.delete(item)

    def read(self, item):
        bus = self.bus()
        try:
            _, session = bus.call_blocking(NAME, ROOT, SERVICE, "OpenSession", "sv", ("plain", dbus.String("")))
            return bytes(bytearray(bus.call_blocking(NAME, item, ITEM, "GetSecret", "o", (session,))[2]))
        finally:
            bus.close()

    @contextmanager
    def person(self):
        """A connection of somebody who may answer prompts."""
        bus = self.bus()
        self.persons.add(bus.get_unique_name())
        try:
            yield bus
        finally:
            bus.close()

    @staticmethod
    def answer(person, prompt):
        if prompt != "/":
            person.call_blocking(NAME, prompt, "org.freedesktop.Secret.Prompt", "Prompt", "s", ("",))

    def write(self, item, secret):
        """Puts another secret into an item, as another program with the same rights might."""
        bus = self.bus()
        try:
            _, session = bus.call_blocking(NAME, ROOT, SERVICE, "OpenSession", "sv", ("plain", dbus.String("")))
            value = dbus.Struct((session, dbus.ByteArray(b""), dbus.ByteArray(secret), "application/json"),
                                signature="oayays")
            bus.call_blocking(NAME, item, ITEM, "SetSecret", "(oayays)", (value,))
        finally:
            bus.close()


class GnomeKeyring(Service):
    title, key = "gnome-keyring", "gnome-keyring"
    package = "gnome-keyring"
    # Each twice in a store: the item, then its secret.
    calls_of_a_store = [(call, when) for call in ("fsync", "rename", "unlink") for when in (1, 2)]

    def start(self, locked=False, bare=False):
        control = self.root / "run/keyring"
        control.mkdir(mode=0o700, exist_ok=True)
        command = ["gnome-keyring-daemon", "--foreground", "--components=secrets", f"--control-directory={control}"]
        if locked or bare:
            self.spawn(command, stdin=subprocess.DEVNULL)
        else:
            self.spawn(command + ["--unlock"], stdin=subprocess.PIPE)
            self.process.stdin.write(PASSWORD)
            self.process.stdin.close()
        self.until(self.answers, "gnome-keyring")
        if not (locked or bare):
            self.until(self.has_collection, "gnome-keyring's collection")

    def unlock(self):
        """What pam_gnome_keyring says."""
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(10)
            control.connect(str(self.root / "run/keyring/control"))
            control.sendall(b"\0")
            control.sendall(struct.pack(">III", 12 + len(PASSWORD), 1, len(PASSWORD)) + PASSWORD)
            answer = b""
            while len(answer) < 8:
                answer += control.recv(8 - len(answer)) or sys.exit("services: gnome-keyring hung up")
        if struct.unpack(">II", answer)[1] != 0:
            raise SystemExit("services: gnome-keyring did not unlock")

    def files(self):
        return self.data / "keyrings"


class KWallet(Service):
    title, key, late = "KWallet", "kwallet", 15
    package = "libkf5wallet-bin"
    WALLET, OBJECT = "kdewallet", ("org.kde.kwalletd5", "/modules/kwalletd5", "org.kde.KWallet")

    def start(self, locked=False, bare=False):
        configuration = self.root / "config/kwalletrc"
        if not configuration.exists():
            configuration.write_text(
                "[Wallet]\nEnabled=true\nFirst Use=false\nDefault Wallet=kdewallet\nPrompt on Open=false\n"
                "Close When Idle=false\nClose on Screensaver=false\n\n[Auto Allow]\nkdewallet=*\n\n"
                "[org.freedesktop.secrets]\napiEnabled=true\n")
        if not (locked or bare) and not (self.files() / "kdewallet.kwl").exists():
            # A wallet that its first start makes is not seen by the Secret Service side.
            self.begin(locked)
            file = self.files() / "kdewallet.kwl"
            self.until(lambda: file.exists() and file.stat().st_size > 0 and self.is_open(), "KWallet's file")
            self.stop()
        self.begin(locked or bare)
        if not (locked or bare):
            self.until(self.has_collection, "KWallet's collection")
            # Before, the prompt would show a window that asks for the password.
            self.until(self.is_open, "KWallet's own opening")
            self.open()

    def passphrase(self):
        """What pam_kwallet makes of a password."""
        salt = self.files() / "kdewallet.salt"
        salt.parent.mkdir(mode=0o700, exist_ok=True)
        if not salt.exists():
            salt.write_bytes(os.urandom(56))
        return hashlib.pbkdf2_hmac("sha512", PASSWORD, salt.read_bytes(), 50000, 56)

    def is_open(self):
        return bool(self.call(self.OBJECT[1], self.OBJECT[2], "isOpen", self.WALLET, name=self.OBJECT[0]))

    def open(self):
        """A wallet that is open for KDE's programs is locked for those of the Secret Service until one has asked for it,
        by a prompt that shows nothing then."""
        with self.person() as person:
            _, prompt = person.call_blocking(NAME, ROOT, SERVICE, "Unlock", "ao", ([self.collection()],))
            self.answer(person, prompt)
            self.until(lambda: not self.is_locked(), "KWallet's consent")

    def begin(self, locked):
        environment = dict(self.environment, QT_QPA_PLATFORM="offscreen")
        if locked:
            self.process = subprocess.Popen(["kwalletd5"], env=environment, stdout=self.log, stderr=self.log)
        else:
            # Plays pam_kwallet: a pipe with the key, and a socket over which the environment comes.
            path = self.root / "run/kwallet5.socket"
            path.unlink(missing_ok=True)
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
                listener.listen(1)
                reading, writing = os.pipe()
                environment["PAM_KWALLET5_LOGIN"] = str(path)
                self.process = subprocess.Popen(
                    ["kwalletd5", "--pam-login", str(reading), str(listener.fileno())], env=environment,
                    pass_fds=(reading, listener.fileno()), stdout=self.log, stderr=self.log)
                os.close(reading)
                os.write(writing, self.passphrase())
                os.close(writing)
                with socket.socket(socket.AF_UNIX) as speaker:
                    speaker.connect(str(path))
                    speaker.sendall("".join(f"{key}={value}\n" for key, value in environment.items()).encode())
        self.until(self.answers, "KWallet")

    def lock(self):
        # Over the Secret Service it closes nothing that is in use.
        self.call(self.OBJECT[1], self.OBJECT[2], "close", self.WALLET, True, name=self.OBJECT[0])

    def unlock(self):
        self.call(self.OBJECT[1], self.OBJECT[2], "pamOpen", self.WALLET, dbus.ByteArray(self.passphrase()),
                  dbus.Int32(0), name=self.OBJECT[0])
        self.open()

    def files(self):
        return self.data / "kwalletd"


class KeePassXC(Service):
    title, key, late, prompts_for_items = "KeePassXC", "keepassxc", 15, True
    crashes = True
    slow_call = "fdatasync"
    package = "keepassxc"
    OBJECT = ("org.keepassxc.KeePassXC.MainWindow", "/keepassxc", "org.keepassxc.KeePassXC.MainWindow")

    def __init__(self, environment, root):
        super().__init__(environment, root)
        self.environment["QT_QPA_PLATFORM"] = "offscreen"
        self.database = self.files() / "canopy.kdbx"

    def start(self, locked=False, bare=False):
        folder = self.root / "config/keepassxc"
        folder.mkdir(exist_ok=True)
        (folder / "keepassxc.ini").write_text(
            "[General]\nConfigVersion=2\nAutoSaveAfterEveryChange=true\nAutoSaveOnExit=true\nSingleInstance=false\n"
            "UpdateCheckMessageShown=true\nUseAtomicSaves=true\n[GUI]\nCheckForUpdates=false\n[FdoSecrets]\n"
            "Enabled=true\nShowNotification=false\nConfirmAccessItem=false\nConfirmDeleteItem=false\n"
            "UnlockBeforeSearch=false\n[Security]\nLockDatabaseIdle=false\nLockDatabaseScreenLock=false\n")
        command = ["keepassxc", "--config", folder / "keepassxc.ini", "--localconfig", folder / "local.ini"]
        if bare:
            self.spawn(command, stdin=subprocess.DEVNULL)
        elif locked:
            self.make()
            self.spawn(command + [self.database], stdin=subprocess.DEVNULL)
        else:
            self.make()
            self.spawn(command + ["--pw-stdin", self.database], stdin=subprocess.PIPE)
            self.process.stdin.write(PASSWORD + b"\n")
            self.process.stdin.close()
        self.until(self.answers, "KeePassXC")
        if not (locked or bare):
            self.until(lambda: self.has_collection() and not self.is_locked(), "KeePassXC's database")

    def make(self):
        """A database with a group that is offered to the Secret Service, which only its window could choose."""
        if self.database.exists():
            return
        self.files().mkdir(mode=0o700, exist_ok=True)
        group, source = uuid.uuid4(), self.root / "database.xml"
        source.write_text(
            '<?xml version="1.0" encoding="utf-8"?>\n<KeePassFile><Meta><Generator>KeePassXC</Generator>'
            "<DatabaseName>canopy</DatabaseName><RecycleBinEnabled>False</RecycleBinEnabled><CustomData><Item>"
            f"<Key>FDO_SECRETS_EXPOSED_GROUP</Key><Value>{{{group}}}</Value></Item></CustomData></Meta><Root><Group>"
            f"<UUID>{b64encode(group.bytes).decode()}</UUID><Name>canopy</Name></Group></Root></KeePassFile>\n")
        subprocess.run(["keepassxc-cli", "import", "-q", "-p", "-t", "100", source, self.database], check=True,
                       input=PASSWORD + b"\n" + PASSWORD + b"\n", env=self.environment, stdout=self.log,
                       stderr=self.log)

    def reset(self):
        # 2.7.4 does not outlive some deletions in a row.
        self.stop()
        self.database.unlink()
        self.start()

    def lock(self):
        # Over the Secret Service it would ask in a window.
        self.call(self.OBJECT[1], self.OBJECT[2], "lockAllDatabases", name=self.OBJECT[0])

    def unlock(self):
        self.call(self.OBJECT[1], self.OBJECT[2], "openDatabase", str(self.database), PASSWORD.decode(),
                  name=self.OBJECT[0])

    def files(self):
        return self.data / "keepassxc"


class Double(Service):
    """What stands in for the others in the project's tests, as it is in most of them: it writes at once, and goes by
    the name of the one that does."""
    title, key = "the tests' double", "double"
    # What is added to its command.
    shape = ["gnome-keyring-d"]
    # A rotation stores twice, before it presents the refresh token and when it has the next. Each time a file is synced and
    # takes the other's place, and the folder is synced.
    calls_of_a_store = [("fsync", when) for when in (1, 2, 3, 4)] + [("rename", when) for when in (1, 2)]

    def start(self, locked=False, bare=False):
        command = [DOUBLE, "--file", self.files() / "items.json", *self.shape]
        command += ["--locked"] * locked + ["--bare"] * bare
        self.process = subprocess.Popen(command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True)
        if "ready" not in self.process.stdout.readline():
            raise SystemExit(f"services: the double did not start; see {self.root}/service.log")

    def tell(self, command, **members):
        print(json.dumps({"do": command, **members}), file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        if answer:
            raise SystemExit(f"services: the double refuses to {command}: {answer}")

    def lock(self):
        # Over the Secret Service some of its shapes ask.
        self.tell("lock", collection="login")

    def unlock(self):
        """As PAM unlocks gnome-keyring, without a signal to anybody; others send one."""
        self.tell("unlock", collection="login", silently=self.like is None)

    def files(self):
        return self.data / "double"

    @classmethod
    def version(cls):
        return ""


class DoubleLikeKWallet(Double):
    title, key, late, like = "the double as KWallet", "double-kwallet", 15, KWallet
    shape = ["--shape", '{"like": "kwalletd5"}', "kwalletd5"]
    calls_of_a_store = ()


class DoubleLikeKeePassXC(Double):
    title, key, late, like = "the double as KeePassXC", "double-keepassxc", 15, KeePassXC
    shape = ["--shape", '{"like": "keepassxc"}', "keepassxc"]
    calls_of_a_store = ()
    prompts_for_items = True

    def reset(self):
        # Over the Secret Service it would ask.
        for item in self.items(**{"xdg:schema": "com.canopy-io.canopyd.session"}):
            self.tell("forget", profile=self.attributes(item)["profile"])


SERVICES = [GnomeKeyring, KWallet, KeePassXC, Double, DoubleLikeKWallet, DoubleLikeKeePassXC]
