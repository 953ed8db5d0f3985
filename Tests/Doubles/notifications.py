#!/usr/bin/python3
"""A notification service as far as canopyd knows one, under a test's control, on the bus of
DBUS_SESSION_BUS_ADDRESS.

It shows nothing, and writes down what it was asked: one JSON object a line on its standard output.
org.canopyd.Double is what tests ask of it.

Usage: notifications.py CAPABILITIES ERROR; the first divided by commas, either may be empty.
"""

import json
import os
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

SERVICE = "org.freedesktop.Notifications"
PATH = "/org/freedesktop/Notifications"
CONTROL = "org.canopyd.Double"


class Refusal(dbus.DBusException):
    def __init__(self, name):
        super().__init__("told to refuse", name=name)


def say(**fields):
    print(json.dumps(fields), flush=True)


class Service(dbus.service.Object):
    def __init__(self, bus, capabilities, error):
        super().__init__(bus, PATH)
        self.capabilities = capabilities
        self.error = error
        self.visible = set()
        self.last = 40

    # What a notification service offers.

    @dbus.service.method(SERVICE, out_signature="as")
    def GetCapabilities(self):
        return dbus.Array(self.capabilities, signature="s")

    @dbus.service.method(SERVICE, in_signature="susssasa{sv}i", out_signature="u")
    def Notify(self, application, replaced, icon, summary, body, actions, hints, timeout):
        if self.error:
            say(call="Refused")
            raise Refusal(self.error)
        if replaced not in self.visible:
            self.last += 1
            replaced = self.last
            self.visible.add(replaced)
            call = "Notify"
        else:
            call = "Replace"
        say(
            call=call, id=int(replaced), application=str(application), summary=str(summary),
            body=str(body), icon=str(icon), actions=len(actions), timeout=int(timeout),
            urgency=int(hints["urgency"]),
        )
        return dbus.UInt32(replaced)

    @dbus.service.method(SERVICE, in_signature="u")
    def CloseNotification(self, number):
        if number not in self.visible:
            raise Refusal("org.freedesktop.DBus.Error.Failed")
        self.visible.remove(number)
        say(call="Close", id=int(number))
        self.NotificationClosed(number, dbus.UInt32(3))

    @dbus.service.signal(SERVICE, signature="uu")
    def NotificationClosed(self, number, reason):
        pass

    # What tests ask.

    @dbus.service.method(CONTROL)
    def Dismiss(self):
        """The user closes everything."""
        for number in sorted(self.visible):
            self.NotificationClosed(dbus.UInt32(number), dbus.UInt32(2))
        self.visible = set()


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.bus.BusConnection(os.environ["DBUS_SESSION_BUS_ADDRESS"])
service = Service(bus, [name for name in sys.argv[1].split(",") if name], sys.argv[2])
name = dbus.service.BusName(SERVICE, bus, do_not_queue=True)
say(call="Ready")
GLib.MainLoop().run()
