"""What gnome-keyring answers to a call and tells by signals, and so the tests' double has to: see scripts/services."""
import re, subprocess, time
from pathlib import Path

import dbus

from secret_services import COLLECTION, ITEM, NAME, PROPERTIES, ROOT, SERVICE
from services_world import Failed

SESSION, PROMPT = "org.freedesktop.Secret.Session", "org.freedesktop.Secret.Prompt"
NOWHERE = ROOT + "/collection/nowhere"
PLAIN = dbus.String("", variant_level=1)


def ours(**attributes):
    """Attributes with a schema: to what has none gnome-keyring gives one, sooner or later."""
    return {"xdg:schema": "com.canopy-io.canopyd.session", **attributes}


SCHEMA = ours(profile="p")


class Conversation:
    """Calls of one service, in a row, and what came of each, without the numbers that it gives its objects."""

    def __init__(self, world):
        self.world, self.service, self.answers = world, world.service, []
        self.connect()

    def connect(self):
        self.bus, self.stranger = self.service.bus(), self.service.bus()
        self.session, self.strange = (
            bus.call_blocking(NAME, ROOT, SERVICE, "OpenSession", "sv", ("plain", PLAIN))[1]
            for bus in (self.bus, self.stranger))

    def call(self, title, path, interface, method, signature="", *arguments, by=None):
        """The reply; None for an error. Of an error its name counts, for the words are for people."""
        try:
            reply = (by or self.bus).call_blocking(NAME, path, interface, method, signature, arguments, timeout=10)
        except dbus.DBusException as error:
            self.answers.append((title, error.get_dbus_name()))
            return None
        self.answers.append((title, plain(reply)))
        return reply

    def get(self, title, path, interface, *names):
        """A property, or all of them."""
        signature, method = ("ss", "Get") if names else ("s", "GetAll")
        return self.call(title, path, PROPERTIES, method, signature, interface, *names)

    def set(self, title, path, interface, name, value):
        self.call(title, path, PROPERTIES, "Set", "ssv", interface, name, value)

    def find(self, title, attributes, path=ROOT, interface=SERVICE):
        self.call(title, path, interface, "SearchItems", "a{ss}", dbus.Dictionary(attributes, signature="ss"))

    def secret(self, value, session=None):
        return dbus.Struct((session or self.session, dbus.ByteArray(b""), dbus.ByteArray(value), "application/json"),
                           signature="oayays")

    def create(self, title, attributes, value=b"secret", replace=False, path=None, session=None, label="Label"):
        properties = {f"{ITEM}.{label}": dbus.String("a label", variant_level=1)}
        if attributes is not None:
            properties[ITEM + ".Attributes"] = dbus.Dictionary(attributes, signature="ss", variant_level=1)
        reply = self.call(title, path or self.login, COLLECTION, "CreateItem", "a{sv}(oayays)b",
                          dbus.Dictionary(properties, signature="sv"), self.secret(value, session), replace)
        return str(reply[0]) if reply else None

    def read(self, title, item, session=None):
        self.call(title, item, ITEM, "GetSecret", "o", session or self.session)

    def read_all(self, title, paths, session=None):
        self.call(title, ROOT, SERVICE, "GetSecrets", "aoo", dbus.Array(paths, signature="o"), session or self.session)

    def write(self, title, item, value=b"another", session=None):
        self.call(title, item, ITEM, "SetSecret", "(oayays)", self.secret(value, session))

    def turn(self, method, title, *paths):
        return self.call(title, ROOT, SERVICE, method, "ao", dbus.Array(paths, signature="o"))

    # What is asked

    def hold(self):
        self.login = str(self.call("the default alias", ROOT, SERVICE, "ReadAlias", "s", "default"))
        self.sessions()
        self.objects()
        self.items()
        self.secrets()
        self.locks()
        self.aliases()
        self.full_disk()
        self.restarts()
        return self.answers

    def sessions(self):
        self.call("a session", ROOT, SERVICE, "OpenSession", "sv", "plain", PLAIN)
        self.call("a session of an algorithm that is not there", ROOT, SERVICE, "OpenSession", "sv", "rot13", PLAIN)
        self.call("a session without a key", ROOT, SERVICE, "OpenSession", "sv",
                  "dh-ietf1024-sha256-aes128-cbc-pkcs7", PLAIN)
        self.call("a stranger's session is closed", self.strange, SESSION, "Close")

    def objects(self):
        self.get("the collection", self.login, COLLECTION)
        self.get("the collection by its alias", ROOT + "/aliases/default", COLLECTION, "Label")
        self.get("the collection, as an item", self.login, ITEM)
        self.get("a property that it has not", self.login, COLLECTION, "Nothing")
        self.set("a property that is not writable", self.login, COLLECTION, "Locked", dbus.Boolean(True, variant_level=1))
        self.set("the collection's label", self.login, COLLECTION, "Label", dbus.String("mine", variant_level=1))
        self.get("a collection that is not there", NOWHERE, COLLECTION)
        self.find("a search in it", {"a": "b"}, NOWHERE, COLLECTION)
        self.create("an item in it", SCHEMA, path=NOWHERE)
        self.call("a path that is not there", ROOT + "/nothing", SERVICE, "ReadAlias", "s", "default")
        self.call("a method that is not there", ROOT, SERVICE, "Nothing")
        self.call("arguments of other types", ROOT, SERVICE, "ReadAlias", "u", 5)

    def items(self):
        self.first = self.create("an item", SCHEMA)
        self.second = self.create("another with the same attributes", SCHEMA)
        which = self.create("an item in place of these", SCHEMA, replace=True)
        self.answers.append(("it is", "one of them" if which in (self.first, self.second) else "new"))
        wide = self.create("an item with two attributes", ours(a="1", b="2"))
        which = self.create("an item with one of them, in place of it", ours(a="1"), replace=True)
        self.answers.append(("it is", "the same" if which == wide else "new"))
        self.get("it has", wide, ITEM)
        self.create("an item without a secret", ours(profile="empty"), b"")
        self.create("an item without attributes", None)
        self.create("an item with a property that is none", None, label="Nothing")
        self.create("an item by a stranger's session", SCHEMA, session=self.strange)
        other = self.create("an item by the collection's alias", ours(profile="x"), path=ROOT + "/aliases/default")
        self.get("the item", self.first, ITEM)
        self.get("the item, as a collection", self.first, COLLECTION, "Label")
        self.set("its label", self.first, ITEM, "Label", dbus.String("new", variant_level=1))
        self.set("a label that is a number", self.first, ITEM, "Label", dbus.UInt32(1, variant_level=1))
        self.set("its time", self.first, ITEM, "Created", dbus.UInt64(1, variant_level=1))
        self.set("its attributes", other, ITEM, "Attributes",
                 dbus.Dictionary(ours(profile="y"), signature="ss", variant_level=1))
        self.set("attributes that are a text", other, ITEM, "Attributes", dbus.String("y", variant_level=1))
        self.get("the attributes", other, ITEM, "Attributes")
        for title, attributes in (("all", {}), ("profile p", {"profile": "p"}), ("profile P", {"profile": "P"}),
                                  ("a profile without a name", {"profile": ""}), ("schema and profile", SCHEMA)):
            self.find(f"a search for {title}", attributes)
            self.find(f"a search in the collection for {title}", attributes, self.login, COLLECTION)

    def secrets(self):
        nobody = ROOT + "/session/nobody"
        gone = self.login + "/9999"
        self.read("a secret", self.first)
        self.read("a secret by a stranger's session", self.first, self.strange)
        self.read("a secret by no session", self.first, nobody)
        self.read("a secret of no item", gone)
        self.read_all("secrets", [self.first, self.second])
        self.read_all("secrets, one of no item", [self.first, gone])
        self.read_all("secrets, one of a collection", [self.first, self.login])
        self.read_all("secrets by no session", [self.first], nobody)
        self.write("a secret is written", self.first)
        self.write("a secret is written by a stranger's session", self.first, session=self.strange)
        self.write("a secret of no item is written", gone)
        self.write("a secret is emptied", self.second, b"")
        self.read("an empty secret", self.second)
        self.call("an item is deleted", self.second, ITEM, "Delete")
        self.call("it is deleted again", self.second, ITEM, "Delete")

    def locks(self):
        paths = (("the collection", self.login), ("its alias", ROOT + "/aliases/default"), ("an item", self.first),
                 ("no item", self.login + "/9999"), ("no collection", NOWHERE))
        for title, path in paths:
            self.turn("Unlock", f"open, {title} is unlocked", path)
        self.turn("Unlock", "nothing is unlocked")
        self.turn("Lock", "the collection is locked", self.login)
        self.turn("Lock", "it is locked again", self.login)
        self.get("locked, the collection", self.login, COLLECTION)
        self.get("locked, an item", self.first, ITEM)
        self.read("locked, a secret", self.first)
        self.read_all("locked, secrets", [self.first])
        self.write("locked, a secret is written", self.first)
        self.create("locked, an item", ours(profile="new"))
        self.create("locked, an item in place of one", SCHEMA, replace=True)
        self.call("locked, an item is deleted", self.first, ITEM, "Delete")
        self.set("locked, a label", self.first, ITEM, "Label", dbus.String("x", variant_level=1))
        self.find("locked, a search", SCHEMA)
        prompt = self.turn("Unlock", "locked, the collection is unlocked", self.login)[1]
        self.turn("Unlock", "locked, an item is unlocked", self.first)
        self.turn("Unlock", "locked, both, and what is not there", self.login, self.first, NOWHERE)
        self.call("a stranger dismisses the prompt", prompt, PROMPT, "Dismiss", by=self.stranger)
        self.call("the prompt is dismissed", prompt, PROMPT, "Dismiss")
        self.call("the prompt is dismissed again", prompt, PROMPT, "Dismiss")
        self.service.unlock()
        self.get("unlocked, the collection", self.login, COLLECTION, "Locked")
        self.read("unlocked, a secret", self.first)

    def aliases(self):
        self.call("an alias that is not there", ROOT, SERVICE, "ReadAlias", "s", "nothing")
        self.call("another alias", ROOT, SERVICE, "SetAlias", "so", "other", self.login)
        label = dbus.Dictionary({COLLECTION + ".Label": dbus.String("c", variant_level=1)}, signature="sv")
        for alias in ("", "default"):
            self.call(f"a collection with the alias '{alias}'", ROOT, SERVICE, "CreateCollection", "a{sv}s", label, alias)
        self.call("the session is closed", self.session, SESSION, "Close")
        self.read("a secret by a session that is closed", self.first)

    def full_disk(self):
        self.connect()
        filler = self.service.data / "filler"
        fill(filler)
        self.write("full, a secret is written", self.first, b"x" * 4000)
        self.read("full, a secret", self.first)
        self.create("full, an item", ours(profile="full"))
        self.find("full, a search for it", {"profile": "full"})
        self.set("full, a label", self.first, ITEM, "Label", dbus.String("x", variant_level=1))
        self.get("full, the label", self.first, ITEM, "Label")
        self.call("full, an item is deleted", self.first, ITEM, "Delete")
        self.find("full, a search for all", {})
        filler.unlink()
        self.write("with space, a secret is written", self.first, b"space")

    def restarts(self):
        self.service.kill()
        self.service.start()
        self.connect()
        self.read("after a kill, a secret", self.first)
        self.get("after a kill, an item", self.first, ITEM)
        self.find("after a kill, a search for all", {})
        self.service.kill()
        self.service.start(locked=True)
        self.connect()
        self.get("begun locked, the collection", self.login, COLLECTION)
        self.get("begun locked, an item", self.first, ITEM)
        for title, attributes in (("all", {}), ("a profile", {"profile": "p"}), ("another profile", {"profile": "q"}),
                                  ("schema and profile", SCHEMA)):
            self.find(f"begun locked, a search for {title}", attributes)
        self.turn("Unlock", "begun locked, the collection is unlocked", self.login)


def fill(path):
    """Leaves no room on a disk."""
    with open(path, "wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass


def plain(value):
    """An answer as text, without the numbers of objects, the times, and what a secret's bytes are."""
    if isinstance(value, dbus.ObjectPath):
        return re.sub(r"/[a-z]?\d+$", "/N", value)
    if isinstance(value, dbus.Dictionary):
        return "{" + ", ".join(sorted(f"{plain(key)}: {plain(member)}" for key, member in value.items())) + "}"
    if isinstance(value, dbus.Array) and value.signature == "y":
        return f"{len(value)} bytes"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(plain, value)) + "]"
    return "a time" if isinstance(value, dbus.UInt64) else repr(value) if value is None else str(value)


def conversation(world):
    """What a service answers, and which signals it sends, as dbus-monitor shows them."""
    log = world.root / "signals.log"
    monitor = subprocess.Popen(
        ["dbus-monitor", "--address", world.environment["DBUS_SESSION_BUS_ADDRESS"],
         f"type='signal',path_namespace='{ROOT}'"], stdout=open(log, "wb"), stderr=subprocess.DEVNULL)
    world.until(lambda: log.stat().st_size > 0, "the monitor")
    try:
        answers = Conversation(world).hold()
        # A signal of our own is the last.
        bus = world.service.bus()
        bus.send_message(dbus.lowlevel.SignalMessage(ROOT + "/end", "end.end", "End"))
        bus.flush()
        world.until(lambda: "member=End" in log.read_text(), "the last signal")
        bus.close()
    finally:
        monitor.terminate()
        monitor.wait()
    lines = log.read_text().split(ROOT, 1)[1].splitlines()
    words = [re.search(r"(path=.*|string .*|object path .*|boolean .*)", line) for line in lines]
    return answers, [re.sub(r"/[a-z]?\d+\b", "/N", word[1]) for word in words if word]


def same_answers(worlds):
    """Each call is answered, and told by signals, as by gnome-keyring"""
    (real, told), (double, told_by_double) = map(conversation, worlds)
    for (title, expected), (_, answer) in zip(real, double, strict=True):
        if answer != expected:
            raise Failed(f"{title}: gnome-keyring answers {expected}, the double {answer}")
    if told != told_by_double:
        place = next((at for at, both in enumerate(zip(told, told_by_double)) if both[0] != both[1]),
                     min(len(told), len(told_by_double)))
        raise Failed(f"signal {place}: gnome-keyring sends {told[place:place + 3]}, the double "
                     f"{told_by_double[place:place + 3]}")
    return len(real), len(told)
