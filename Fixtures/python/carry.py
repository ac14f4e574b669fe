"""Carries messages between two containers with nothing but Python's standard library.

Written from the article "The directory" alone:

    carry.py <here> <there> <member> ...

The members are those of the second container. Messages that wait for them in the first one are
delivered in the second, and the outcomes come back, until the process is killed. If the variable
DIES_AT is a number, the process kills itself before so many changes.

A record in the first container binds a number to the names of messages before they are claimed. A
cursor in the second one states the last number, and the names under which its messages are
delivered. Both are replaced by one rename each, so the next process continues at any point.
"""

import datetime
import fcntl
import os
import plistlib
import signal
import sys
import time

changes_left = int(os.environ.get("DIES_AT", "0"))


def change(call, *arguments):
    """Makes a change, or dies before it."""
    global changes_left
    changes_left -= 1
    if changes_left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return call(*arguments)


def attempt(call, *arguments):
    """Makes a change that an earlier process may have made; false if it has."""
    try:
        change(call, *arguments)
        return True
    except FileNotFoundError:
        return False


def escaped(name):
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
    parts = []
    for place, byte in enumerate(name.encode()):
        is_plain = byte in plain and not (place == 0 and byte == ord("."))
        parts.append(chr(byte) if is_plain else "%%%02X" % byte)
    return "".join(parts)


def load(path):
    try:
        with open(path, "rb") as file:
            return plistlib.loads(file.read(), fmt=plistlib.FMT_BINARY)
    except FileNotFoundError:
        return None


class Container:
    def __init__(self, path):
        self.path = path
        self.latest = 0

    def stage(self, make):
        """Makes an entry in `staging/`, locked: without a lock it would be a dead process's."""
        while True:
            staged = "%s/staging/%s" % (self.path, os.urandom(8).hex())
            file = make(staged)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.exists(staged):
                    return (staged, file)
            except BlockingIOError:
                pass
            os.close(file)

    def replace(self, path, value):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        (staged, file) = self.stage(lambda staged: os.open(staged, flags, 0o600))
        with os.fdopen(file, "wb") as stream:
            stream.write(plistlib.dumps(value, fmt=plistlib.FMT_BINARY))
            stream.flush()
            change(os.rename, staged, path)

    def resident(self, sender):
        """The directory of a sender, as the names of messages state the sender."""
        if sender.startswith("~"):
            return "%s/guests/%s" % (self.path, sender[1:])
        return "%s/members/%s" % (self.path, sender)

    def ensure(self, home):
        """Makes a member's directory complete before it has its name."""
        if os.path.isdir(home):
            return
        (staged, directory) = self.stage(make_directory)
        for part in ("inbox", "claimed", "dead", "receipts", "context", "live", "files"):
            os.mkdir("%s/%s" % (staged, part), 0o700)
        os.close(os.open(staged + "/presence", os.O_WRONLY | os.O_CREAT, 0o600))
        self.publish(staged, home)
        os.close(directory)

    def publish(self, staged, path):
        try:
            change(os.rename, staged, path)
        except OSError:
            if not os.path.isdir(path):
                raise

    def move_away(self, home, machine):
        """States that the home of the member is another machine."""
        self.ensure(home)
        if not os.path.exists(home + "/elsewhere.plist"):
            since = datetime.datetime.utcnow()
            self.replace(home + "/elsewhere.plist", {"machine": machine, "since": since})

    def stamp(self):
        epoch = load(self.path + "/system/epoch/value.plist")
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.latest = max(self.latest + 1, now)
        return "%05x%015x" % (epoch["epoch"] if epoch else 1, self.latest)


def make_private(container, *names):
    """Makes a directory below `bridge/`, which has a mark from the beginning."""
    path = container.path + "/bridge"
    identifier = load(container.path + "/container.plist")["id"]
    if not os.path.isdir(path):
        (staged, directory) = container.stage(make_directory)
        with open(staged + "/mark.plist", "wb") as file:
            file.write(plistlib.dumps({"container": identifier}, fmt=plistlib.FMT_BINARY))
        container.publish(staged, path)
        os.close(directory)
    if load(path + "/mark.plist") != {"container": identifier}:
        sys.exit("'%s' was not made for this container" % path)
    for name in names:
        path += "/" + name
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass
    return path


def make_directory(path):
    os.mkdir(path, 0o700)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


class Carrier:
    def __init__(self, here, there, members):
        (self.here, self.there) = (Container(here), Container(there))
        self.out = make_private(self.here, "out", "there")
        self.staged = make_private(self.there, "in", "here")
        self.members = members
        for member in members:
            self.here.move_away(self.proxy(member), "there")

    def proxy(self, member):
        return self.here.resident(escaped(member))

    def waiting(self):
        # A name with a later stamp may be shown without its predecessor.
        now = self.here.stamp()
        found = []
        for member in self.members:
            names = sorted(os.listdir(self.proxy(member) + "/inbox"))
            waiting = [name for name in names if name.count(",") == 4 and name[2:22] < now]
            found += [{"to": member, "name": name} for name in waiting[:64]]
        return found

    def carry(self):
        """Carries the messages of one record; false if nothing waits."""
        cursor = load(self.staged + "/cursor.plist") or {"number": 0, "entries": []}
        record = load(self.out + "/record.plist")
        if record is None:
            record = {"number": cursor["number"] + 1, "entries": self.waiting()}
            if not record["entries"]:
                return False
            self.here.replace(self.out + "/record.plist", record)
        if record["number"] != cursor["number"]:
            cursor = self.receive(record)
        for entry in cursor["entries"]:
            inbox = self.there.resident(escaped(entry["to"])) + "/inbox/"
            attempt(os.rename, "%s/%s" % (self.staged, entry["name"]), inbox + entry["delivered"])
        for entry in record["entries"]:
            if entry["name"][23] != "r":
                attempt(os.unlink, "%s/claimed/%s~1" % (self.proxy(entry["to"]), entry["name"]))
        change(os.unlink, self.out + "/record.plist")
        return True

    def receive(self, record):
        cursor = {"number": record["number"], "entries": []}
        for entry in record["entries"]:
            (home, name) = (self.proxy(entry["to"]), entry["name"])
            claimed = "%s/claimed/%s~1" % (home, name)
            attempt(os.rename, "%s/inbox/%s" % (home, name), claimed)
            message = load(claimed)
            if message is None:
                continue
            (priority, stamp, mark, identifier, sender) = name.split(",")
            if mark[0] == "r" and sender:
                self.there.move_away(self.there.resident(sender), "here")
            self.there.ensure(self.there.resident(escaped(entry["to"])))
            message["origin"] = {"to": entry["to"], "name": name}
            self.there.replace("%s/%s" % (self.staged, name), message)
            stamp = self.there.stamp()
            delivered = ",".join((priority, stamp, mark, identifier, sender))
            cursor["entries"].append({"to": entry["to"], "name": name, "delivered": delivered})
        self.there.replace(self.staged + "/cursor.plist", cursor)
        return cursor

    def tell_outcomes(self):
        for folder in ("members", "guests"):
            for sender in os.listdir("%s/%s" % (self.there.path, folder)):
                home = "%s/%s/%s" % (self.there.path, folder, sender)
                if (load(home + "/elsewhere.plist") or {}).get("machine") == "here":
                    self.tell_outcomes_of(home, "%s/%s/%s" % (self.here.path, folder, sender))

    def tell_outcomes_of(self, home, sender):
        for receipt in sorted(os.listdir(home + "/receipts")):
            message = load("%s/receipts/%s" % (home, receipt)) or {}
            if "origin" not in message:
                continue
            (to, name) = (message["origin"]["to"], message["origin"]["name"])
            claimed = "%s/claimed/%s~1" % (self.proxy(to), name)
            end = receipt.rpartition(".")[2]
            if os.path.isdir(sender):
                attempt(os.rename, claimed, "%s/receipts/%s.%s" % (sender, name, end))
            else:
                attempt(os.unlink, claimed)
            attempt(os.unlink, "%s/claimed/%s,cancel" % (self.proxy(to), name))
            attempt(os.unlink, "%s/receipts/%s" % (home, receipt))


def main():
    carrier = Carrier(sys.argv[1], sys.argv[2], sys.argv[3:])
    print("carrying", flush=True)
    while True:
        while carrier.carry():
            pass
        carrier.tell_outcomes()
        time.sleep(0.005)


main()
