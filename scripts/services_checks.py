"""What is asked of every Secret Service, in worlds of their own: see scripts/services."""
import json, shutil, signal, subprocess, time
from pathlib import Path

import dbus

from secret_services import Double, GnomeKeyring
from services_calls import fill, same_answers
from services_world import Failed, ServiceWorld, promised, words

# Seconds from the moment that the server lets its answer go to the death of the keyring: before, within and after the
# store, and around the five seconds after which KWallet writes.
MOMENTS = [0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.5, 4, 6]


class Shortfall(Exception):
    """What a service does not do as it should; `held` is what was seen of canopyd all the same."""


def sign_in(world):
    """Signing in stores one item, and status names the service"""
    world.sign_in("p1", "p2")
    for profile in ("p1", "p2"):
        items = world.service.items(profile=profile)
        if len(items) != 1:
            raise Failed(f"{profile} has {len(items)} items")
        missing = {"profile", "machine", "xdg:schema"} - set(world.service.attributes(items[0]))
        if missing:
            raise Failed(f"the item lacks {', '.join(sorted(missing))}")
    keyring = world.ask("GET", "/v1/status")[1]["keyring"]
    # The kernel keeps 15 bytes of a name; status has it whole.
    whole = {"gnome-keyring-d": "gnome-keyring-daemon"}
    comm = Path(f"/proc/{world.service.pid}/comm").read_text().strip()
    if keyring.get("owner") != whole.get(comm, comm):
        raise Failed(f"status says {keyring}, and it is {comm}")
    world.judge()
    if world.prompts():
        raise Shortfall("a new item is made by a prompt, which shows nothing while the database is open")


def restart(world):
    """A restarted canopyd serves the same token, and rotates nothing"""
    before, seen = world.token("p1"), world.requests("p1", "p2")
    world.restart_daemon()
    if world.token("p1") != before:
        raise Failed("it is another token")
    world.kill_daemon()
    world.start_daemon()
    if world.token("p1") != before:
        raise Failed("it is another token after a kill")
    if world.requests("p1", "p2") != seen:
        raise Failed("the server was asked")
    world.judge()


def overlap(world):
    """Two profiles whose attributes overlap stay apart"""
    world.sign_in("work", "work-2", "wor")
    world.rotate("work")
    for attempt in range(3):
        # KWallet, on a busy machine, has been seen to answer once with a secret that libsecret cannot decrypt.
        status, body = world.ask("POST", "/v1/profiles/work/logout", timeout=30)
        if status != 503 or body.get("code") != "keyring_unavailable":
            break
    if status != 204:
        raise Failed(f"the sign-out of work was answered {status}: {words(body)}")
    world.expected.discard("work")
    world.restart_daemon()
    left = world.service.items(profile="work")
    if world.ask("GET", "/v1/profiles/work")[0] != 404 or any(world.service.read(item) for item in left):
        raise Failed("something is left of the one that was signed out")
    world.rotate("work-2", "wor")
    world.judge()
    if left:
        raise Shortfall("it asks before an item is deleted: after a sign-out an item without a secret stays")


def lock(world):
    """Locked in use: served from memory, nothing presented; within 2 s of the unlocking all goes on"""
    world.sign_in("locked")
    world.wait_settled()
    seen, token = world.requests("locked"), world.token("locked")
    world.service.lock()
    # A keyring that asked for a prompt or a window here would be waited for.
    status, body = world.refresh("locked", timeout=20)
    if status == 200:
        raise Failed("it rotated with a locked keyring")
    if world.token("locked") != token:
        raise Failed("the token in hand is not served")
    state = world.view("locked")["state"]
    if world.requests("locked") != seen:
        raise Failed("the refresh token was presented")
    world.service.unlock()
    took = world.wait_state("locked", "active")
    world.rotate("locked")
    world.judge()
    if state != "keyring_locked":
        raise Shortfall(f"locked, it is {state} and not keyring_locked")
    if took > promised(2):
        raise Shortfall(f"it took {took:.1f} s to notice the unlocking")


def hang(world):
    """Stopped within a store: the new token is served, stored later; stopped at rest: every answer comes in time"""
    world.sign_in("hung", "waiting")
    world.wait_settled()
    world.hold("hung")
    world.service.signal(signal.SIGSTOP)
    try:
        world.release()
        world.wait(lambda: world.view("hung")["generation"] == 1, "the new token is served", 20)
        seen = world.requests("waiting")
        began = time.monotonic()
        status, body = world.refresh("waiting", timeout=30)
        if status == 200 or time.monotonic() - began > 30 or world.requests("waiting") != seen:
            raise Failed(f"a rotation with a keyring that hangs: {status} after {time.monotonic() - began:.1f} s")
        began = time.monotonic()
        world.ask("GET", "/v1/status")
        took = time.monotonic() - began
        if took > promised(1):
            raise Failed(f"status was not answered at once, but after {took:.1f} s")
        state = world.view("hung")["state"]
        if state != "degraded":
            raise Failed(f"with a successor that is not stored it is {state}")
    finally:
        world.service.signal(signal.SIGCONT)
    for profile in ("hung", "waiting"):
        world.wait_state(profile, "active", seconds=75)
    world.rotate("waiting")
    world.judge()


def killed(world):
    """Killed in each moment of a store and seconds after it: nothing is lost"""
    moments = [moment for moment in MOMENTS if moment < 1 or world.kind.late]
    victims = [f"k{number}" for number in range(len(moments))]
    world.sign_in(*victims)
    world.wait_settled()
    for profile, moment in zip(victims, moments):
        world.hold(profile)
        world.release()
        time.sleep(moment)
        world.restart_service()
    inject(world)
    pass_over(world)
    world.judge()
    # What no slot holds any more has to be on the disk.
    world.wait_settled()
    world.kill_daemon()
    world.restart_service()
    world.start_daemon()
    world.rotate(*victims)
    world.judge()


def inject(world):
    """Kills it on entering a system call of a store."""
    for number, (call, when) in enumerate(world.kind.calls_of_a_store):
        profile = f"s{number}"
        world.sign_in(profile)
        tracer = trace(world, call, f"signal=KILL:when={when}")
        world.demand(profile)
        world.wait(lambda: world.service.process.poll() is not None, f"a store comes to {call} {when}")
        tracer.wait(10)
        world.service.start()
        world.wait_state(profile, "active", seconds=40)


def pass_over(world):
    """Stores while the file is synced with another change, and kills the keyring in the moment when canopyd has let go."""
    if not world.kind.slow_call:
        return
    world.sign_in("passed")
    world.wait_settled()
    tracer = trace(world, world.kind.slow_call, "delay_enter=4000000:when=1")
    world.hold("passed")
    time.sleep(1.5)  # The mark is being saved by now.
    world.release()
    world.wait(lambda: world.view("passed")["generation"] == 1, "the new token is served", 20)
    time.sleep(3)
    tracer.terminate()
    tracer.wait(10)
    world.wait_settled()
    world.service.kill()
    world.kill_daemon()
    world.service.start()
    world.start_daemon()
    world.wait_state("passed", "active", seconds=40)
    world.rotate("passed")


def trace(world, call, injection):
    """strace, which does something to the keyring at a system call."""
    tracer = subprocess.Popen(
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:{injection}",
         "-p", str(world.service.pid)], stderr=subprocess.DEVNULL)
    status = Path(f"/proc/{world.service.pid}/status")
    world.wait(lambda: f"TracerPid:\t{tracer.pid}" in status.read_text(), "strace attaches")
    return tracer


def restarted_locked(world):
    """Restarted locked: keyring_locked, nothing presented; within 2 s of the unlocking a token comes"""
    world.wait_settled()
    seen = world.requests("p1", "p2")
    world.stop_daemon()
    world.restart_service(locked=True)
    world.start_daemon()
    answer = world.token("p1")
    state = world.view("p1")["state"]
    if world.requests("p1", "p2") != seen:
        raise Failed("the refresh token was presented")
    if answer not in ("keyring_locked", "keyring_unavailable"):
        raise Failed(f"a request for a token was answered {answer}")
    world.service.unlock()
    took = world.wait_state("p1", "active", seconds=70)
    world.judge()
    if state != "keyring_locked":
        raise Shortfall(f"locked, it is {state} and not keyring_locked")
    if took > promised(2):
        raise Shortfall(f"it took {took:.1f} s to notice the unlocking")


def empty_secret(world):
    """An item with an empty secret was never stored: nothing presented, and the next sign-in fills it"""
    world.sign_in("empty")
    world.wait_settled()
    item, = world.service.items(profile="empty")
    seen = world.requests("empty")
    world.stop_daemon()
    world.service.write(item, b"")
    world.start_daemon()
    expect_end(world, "empty", "keyring_reset", seen)
    world.sign_in("empty")
    if world.service.items(profile="empty") != [item]:
        raise Failed("the sign-in left the empty item, and made another")
    world.judge()


def reset(world):
    """All items deleted: keyring_reset, nothing presented; signing in again works"""
    world.sign_in("p1", "p2")
    world.wait_settled()
    seen = world.requests("p1")
    world.stop_daemon()
    world.service.reset()
    world.start_daemon()
    world.expected.clear()
    expect_end(world, "p1", "keyring_reset", seen)
    world.sign_in("p1", "p2")
    world.judge()


def restored(world):
    """The keyring's files from before two rotations: restored_copy, nothing presented; signing in again works"""
    world.sign_in("copied")
    world.rotate("copied")
    world.wait_settled()
    time.sleep(world.kind.late)
    copy = world.root / "backup"
    shutil.copytree(world.service.files(), copy)
    world.rotate("copied")
    world.rotate("copied")
    world.wait_settled()
    seen = world.requests("copied")
    world.stop_daemon()
    world.service.kill()
    shutil.rmtree(world.service.files())
    shutil.copytree(copy, world.service.files())
    world.service.start()
    world.start_daemon()
    world.expected.discard("copied")
    expect_end(world, "copied", "restored_copy", seen)
    world.sign_in("copied")
    world.judge()


def expect_end(world, profile, reason, seen):
    world.wait_state(profile, "signin_required")
    view = world.view(profile)
    if view.get("reason") != reason:
        raise Failed(f"the reason is {view.get('reason')} and not {reason}")
    if world.refresh(profile)[0] != 401 or world.requests(profile) != seen:
        raise Failed("the refresh token was presented")
    world.expected.discard(profile)


def rotations(world, count, profiles=10):
    """Rotations in a row, of ten profiles side by side"""
    names = [f"r{number}" for number in range(profiles)]
    world.sign_in(*names)
    for _ in range(-(-count // profiles)):
        world.rotate(*names)
    world.wait_settled()
    world.kill_daemon()
    world.restart_service()
    world.start_daemon()
    world.judge()


def limits(world):
    """A profile of 64 characters, an access token of 64 KiB and a refresh token of 16 KiB"""
    profile = "a" * 64
    world.sign_in(profile)
    began = time.time()
    world.rotate(profile)
    world.wait_settled()
    written(world, began)
    world.kill_daemon()
    world.restart_service()
    world.start_daemon()
    token = world.token(profile)
    if len(token) < 65_536:
        raise Failed(f"a token of {len(token)} bytes was answered")
    command = [world.bin / "canopyctl"]
    printed = subprocess.run(command + ["token", "--profile", profile], env=world.environment, capture_output=True,
                             text=True).stdout
    held = subprocess.run(command + ["exec", "--profile", profile, "--", "sh", "-c",
                                     'printf %s "$CANOPY_ACCESS_TOKEN"'], env=world.environment, capture_output=True,
                          text=True).stdout
    if printed.strip() != token or held != token:
        raise Failed(f"canopyctl token printed {len(printed)} bytes, and exec gave {len(held)}")
    world.rotate(profile)
    world.judge()


def written(world, began):
    """Waits until a service that writes in its own time has written what it was given since `began`, and has now."""
    given = time.time()

    def rests():
        try:
            latest = max(path.stat().st_mtime for path in world.service.files().rglob("*"))
        except FileNotFoundError:
            return False  # One file takes another's place.
        return latest > began and time.time() - max(latest, given) > 2
    try:
        world.wait(rests, "the file is written", world.kind.late)
    except Failed:
        pass  # By then each of them has.


def bare(world):
    """No collection to keep a session in: refused with keyring_unavailable, and nothing is made unasked"""
    began = time.monotonic()
    status, body = world.log_in("early")
    if time.monotonic() - began > 30:
        raise Failed(f"the sign-in took {time.monotonic() - began:.0f} s")
    if status == 200:
        raise Failed("somebody signed in without a keyring")
    if world.prompts():
        raise Failed(f"somebody was asked: {', '.join(world.prompts())}")
    code = body.get("code")
    world.service.stop()
    world.service.start()
    world.sign_in("early")
    world.rotate("early")
    world.judge()
    if code != "keyring_unavailable":
        raise Shortfall(f"the answer is {code}")


def full_disk(world):
    """A full disk: nothing is presented that could not be stored, and all goes on with space"""
    world.sign_in("full")
    world.wait_settled()
    seen = world.requests("full")
    filler = world.root / "data/filler"
    fill(filler)
    status, body = world.refresh("full", timeout=20)
    presented, token = world.requests("full") > seen, world.token("full")
    filler.unlink()
    if not presented and (status == 200 or len(token) < 40):
        raise Failed(f"the refresh was answered {status}, a request for the token {token[:40]}")
    world.wait_state("full", "active", seconds=75)
    world.rotate("full")
    world.wait_settled()
    world.kill_daemon()
    world.restart_service()
    world.start_daemon()
    world.judge()
    if presented:
        raise Shortfall("it says that it has stored what it could not write")


def mount(root):
    """A disk of its own for the keyring's files, in this process's mount namespace."""
    (root / "data").mkdir(mode=0o700, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", root / "data"], check=True)


# A world, and what is asked in it, in this order.
WORLDS = {
    "main": [sign_in, restart, overlap, lock, hang, restarted_locked, empty_secret], "kills": [killed],
    "copies": [restored, reset], "rotations": [rotations], "limits": [limits], "bare": [bare], "disk": [full_disk],
}

# What is no line of the table, and asked of the double alone: it has to be taken for gnome-keyring.
DOUBLES_WORLDS = {"calls": [same_answers]}


def worlds(kind):
    return {**WORLDS, **DOUBLES_WORLDS} if kind is Double else WORLDS


def run_calls(root, bin):
    """A conversation with gnome-keyring, and the same with the double: without a canopyd, each on a disk of its own."""
    pair = []
    try:
        for kind in (GnomeKeyring, Double):
            world = ServiceWorld(kind, Path(root) / kind.key, bin)
            pair.append(world)
            world.root.mkdir()
            mount(world.root)
            world.start_bus()
            world.service = kind(world.environment, world.root)
            world.service.start()
        began = time.monotonic()
        verdict, said = outcome(same_answers, pair, 0)
        yield same_answers, verdict, said, time.monotonic() - began
    finally:
        for world in pair:
            world.finish()


def run(kind, name, root, bin, count):
    """Yields (check, verdict, words, seconds)."""
    root = Path(root)
    if name in DOUBLES_WORLDS:
        yield from run_calls(root, bin)
        return
    how, lifetime, sandbox = {}, 300, ()
    if name == "rotations":
        lifetime = 300 if kind.late else 20
    if name == "limits":
        sandbox = ("--token-bytes", 65_536, "--refresh-token-bytes", 16_384)
    if name == "bare":
        how = {"bare": True}
    if name == "disk":
        mount(root)
    world = ServiceWorld(kind, root, bin, lifetime, sandbox)
    try:
        world.start(**how)
        for check in WORLDS[name]:
            began = time.monotonic()
            verdict, said = outcome(check, world, count)
            if verdict == "failed" and kind.crashes and world.service.has_crashed():
                # Whoever uses it starts it again; what it has cost so far, the same check finds.
                world.service.start()
                # What it has lost is made again, out of the slots.
                world.made += len(world.expected) + 1
                verdict, said = outcome(check, world, count)
            yield check, verdict, said, time.monotonic() - began
    finally:
        world.finish()


def outcome(check, world, count):
    try:
        check(world, count) if check is rotations else check(world)
    except Shortfall as shortfall:
        return "short", str(shortfall)
    except Failed as failure:
        return "failed", str(failure)
    except (OSError, dbus.DBusException) as error:
        return "failed", f"{type(error).__name__}: {error}"
    return "passed", ""
