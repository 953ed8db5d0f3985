#!/usr/bin/python3
"""Runs a command at a terminal, waits for it to ask for a password, and types the first line of
standard input; ends with the command's status. Fails if the password is echoed."""

import os
import pty
import select
import sys

password = sys.stdin.buffer.readline()
child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
seen = b""
typed = False
while True:
    if not select.select([terminal], [], [], 30)[0]:
        sys.exit("nothing more was said, after: " + seen.decode(errors="replace"))
    try:
        chunk = os.read(terminal, 4096)
    except OSError:
        break
    if not chunk:
        break
    seen += chunk
    if not typed and b"assword" in seen:
        typed = True
        os.write(terminal, password)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if not typed:
    sys.exit("no password was asked for: " + seen.decode(errors="replace"))
if password.strip() in seen:
    sys.exit("the password was echoed")
sys.stdout.write(seen.decode(errors="replace"))
sys.exit(status)
