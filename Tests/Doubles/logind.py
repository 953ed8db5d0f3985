#!/usr/bin/python3
"""A logind as far as canopyd knows one, under a test's control, on the bus of
DBUS_SYSTEM_BUS_ADDRESS.

It hands out delay inhibitors, says when sleep and shutdown begin and end, and refuses with the
error that it is told to. org.canopyd.Double is what tests ask of it.

Usage: logind.py OPERATION ERROR; either may be empty.
"""

import os
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

LOGIN = "org.freedesktop.login1"
MANAGER = LOGIN + ".Manager"
CONTROL = "org.canopyd.Double"
PROPERTIES = "org.freedesktop.DBus.Properties"


class Refusal(dbus.DBusException):
    def __init__(self, name):
        super().__init__("told to refuse", name=name)


class Manager(dbus.service.Object):
    def __init__(self, bus, preparing, refusal):
        super().__init__(bus, "/org/freedesktop/login1")
        self.preparing = {"Sleep": False, "Shutdown": False}
        if preparing:
            self.preparing[preparing] = True
        self.refusal = refusal
        self.open = {}
        self.given = 0

    # What logind offers.

    @dbus.service.method(MANAGER, in_signature="ssss", out_signature="h")
    def Inhibit(self, what, who, why, mode):
        if set(what.split(":")) != {"sleep", "shutdown"} or mode != "delay" or not who or not why:
            raise Refusal("org.freedesktop.DBus.Error.InvalidArgs")
        if self.refusal:
            raise Refusal(self.refusal)
        if any(self.preparing.values()):
            raise Refusal(LOGIN + ".OperationInProgress")
        reader, writer = os.pipe()
        self.given += 1
        self.open[reader] = GLib.io_add_watch(reader, GLib.IO_HUP, self.released)
        descriptor = dbus.types.UnixFd(writer)
        os.close(writer)
        return descriptor

    def released(self, reader, condition):
        del self.open[reader]
        os.close(reader)
        return False

    @dbus.service.signal(MANAGER, signature="b")
    def PrepareForSleep(self, begins):
        pass

    @dbus.service.signal(MANAGER, signature="b")
    def PrepareForShutdown(self, begins):
        pass

    @dbus.service.method(PROPERTIES, in_signature="ss", out_signature="v")
    def Get(self, interface, name):
        return dbus.Boolean(self.preparing[name.removeprefix("PreparingFor")])

    # What tests ask.

    @dbus.service.method(CONTROL, in_signature="sb")
    def Prepare(self, what, begins):
        """Sleep or Shutdown begins, or is over."""
        self.preparing[what] = bool(begins)
        signal = self.PrepareForSleep if what == "Sleep" else self.PrepareForShutdown
        signal(begins)

    @dbus.service.method(CONTROL, in_signature="sb")
    def PrepareUntold(self, what, begins):
        """The same, and nobody hears of it."""
        self.preparing[what] = bool(begins)

    @dbus.service.method(CONTROL, in_signature="s")
    def Refuse(self, error):
        """Refuses inhibitors with this error; "" hands them out again."""
        self.refusal = error

    @dbus.service.method(CONTROL, out_signature="uu")
    def Inhibitors(self):
        """How many are held, and how many were ever handed out."""
        return len(self.open), self.given


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.bus.BusConnection(os.environ["DBUS_SYSTEM_BUS_ADDRESS"])
manager = Manager(bus, preparing=sys.argv[1], refusal=sys.argv[2])
name = dbus.service.BusName(LOGIN, bus, do_not_queue=True)
print("ready", flush=True)
GLib.MainLoop().run()
