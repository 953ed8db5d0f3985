"""A terminal of its own for a command, as a person's shell gives it one: it is asked for passwords on it."""
import os, pty, select, signal, subprocess, time
from pathlib import Path


class Terminal:
    """As a context, it leaves nothing behind: a command that still runs is killed, with its process group."""

    def __init__(self, *command, **more):
        self.shown = b""
        self.file, inner = pty.openpty()
        try:
            # Not pty.fork: what another thread holds at that moment, nobody would ever give back in the child.
            self.process = subprocess.Popen(
                ["setsid", "--ctty", *command], stdin=inner, stdout=inner, stderr=inner, **more)
        except BaseException:
            os.close(self.file)
            raise
        finally:
            os.close(inner)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.file)

    def read(self, seconds):
        """Takes what is shown within so many seconds, and says whether more may come: until nobody has the terminal."""
        if not select.select([self.file], [], [], seconds)[0]:
            return True
        try:
            more = os.read(self.file, 65536)
        except OSError:
            return False
        self.shown += more
        return bool(more)

    def type(self, text):
        os.write(self.file, text.encode())

    def wait(self, seconds):
        """The exit status, as a shell has it; subprocess.TimeoutExpired where there is none in time. A program may
        close its terminal and end a little later, as ln does: who gives the terminal up before has it hung up on."""
        status = self.process.wait(seconds)
        return 128 - status if status < 0 else status

    def running(self):
        """What of its session is still there, and what it waits for."""
        lines = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                number, _, fields = (place / "stat").read_text().rpartition(")")
                if int(fields.split()[3]) == self.process.pid:
                    command = (place / "cmdline").read_text().replace("\0", " ")
                    lines.append(f"{number}) {fields.split()[0]} in {(place / 'wchan').read_text()}: {command}")
            except OSError:
                continue  # It has just ended.
        return "\n".join(lines)
