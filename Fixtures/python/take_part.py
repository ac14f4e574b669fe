"""Takes part in a container with nothing but Python's standard library.

Written from the article "The directory" alone:

    take_part.py <container> <channel> read
    take_part.py <container> <channel> add <times>
    take_part.py <container> <member> send <text> [<header>=<value> ...]
    take_part.py <container> <member> inbox

The last verb prints the kind, the headers and the value of each waiting message.
It holds the lock of a channel as the others do, and notices when it was taken over. It takes
nothing over itself: it waits.
"""

import datetime
import fcntl
import os
import plistlib
import shutil
import sys
import time


def escaped(name):
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
    parts = []
    for place, byte in enumerate(name.encode()):
        is_plain = byte in plain and not (place == 0 and byte == ord("."))
        parts.append(chr(byte) if is_plain else "%%%02X" % byte)
    return "".join(parts)


def read(channel):
    try:
        with open(channel + "/value.plist", "rb") as file:
            return plistlib.loads(file.read(), fmt=plistlib.FMT_BINARY)
    except FileNotFoundError:
        return {"version": 0}


def change(channel, compute):
    """Replaces the value by what `compute` makes of it."""
    while not try_to_change(channel, compute):
        pass


def try_to_change(channel, compute):
    locks = channel + "/lock/"
    generation = 1
    while os.path.exists(locks + str(generation + 1)):
        generation += 1
    lock = os.open(locks + str(generation), os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        own = "%s%d.d" % (locks, generation)
        try:
            os.mkdir(own, 0o700)
        except FileExistsError:
            pass
        try:
            staging = os.open(own, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            for lower in range(1, generation):
                shutil.rmtree("%s%d.d" % (locks, lower), ignore_errors=True)
            # Only now: whoever made the next generation before this look has it seen here, and
            # whoever makes it later removes the directory that is open already.
            if os.path.exists(locks + str(generation + 1)):
                return False
            os.pwrite(lock, os.urandom(64), 0)
            return commit(channel, staging, compute(read(channel)))
        finally:
            os.close(staging)
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)


def commit(channel, staging, value):
    """Moves the value into place; false if the lock was taken over meanwhile."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        try:
            file = os.open("next", flags, 0o600, dir_fd=staging)
        except FileExistsError:
            os.unlink("next", dir_fd=staging)
            file = os.open("next", flags, 0o600, dir_fd=staging)
        with os.fdopen(file, "wb") as stream:
            stream.write(plistlib.dumps(value, fmt=plistlib.FMT_BINARY))
            # Python cannot exchange two names, and keeps no earlier value: so this one has to be
            # on disk before it takes the place of the one that is there.
            stream.flush()
            os.fsync(stream.fileno())
        target = os.open(channel, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.rename("next", "value.plist", src_dir_fd=staging, dst_dir_fd=target)
        finally:
            os.close(target)
        return True
    except FileNotFoundError:
        return False


def value_of(found):
    """The value; None if there is none, or if it has expired."""
    if "until" in found and found["until"] <= datetime.datetime.utcnow():
        return None
    return found.get("value")


def add_one(found):
    if "home" in found:
        sys.exit("the value is a copy: its home is machine %s" % found["home"].get("machine"))
    changed = {
        "version": found["version"] + 1,
        "sent": datetime.datetime.utcnow(),
        "from": "take_part.py %d" % os.getpid(),
        "value": (value_of(found) or 0) + 1,
    }
    # A changed value expires when the value would have.
    if "until" in found and value_of(found) is not None:
        changed["until"] = found["until"]
    # Without these, a change that another machine asks for again would be made twice.
    if "operations" in found:
        changed["operations"] = found["operations"]
    return changed


def send(container, member, text, headers):
    """Sends a message without an outcome; the container has been used since the last start."""
    with open(container + "/system/epoch/value.plist", "rb") as file:
        epoch = plistlib.loads(file.read(), fmt=plistlib.FMT_BINARY)["epoch"]
    message = {
        "kind": "String",
        "sent": datetime.datetime.utcnow(),
        "to": member,
        "headers": headers,
        "value": text,
    }
    identifier = os.urandom(8).hex()
    staged = container + "/staging/" + identifier
    with open(staged, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
        stream.write(plistlib.dumps(message, fmt=plistlib.FMT_BINARY))
        stream.flush()
        os.fsync(stream.fileno())
    inbox = "%s/members/%s/inbox" % (container, escaped(member))
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    os.rename(staged, "%s/1,%05x%015x,n01,%s," % (inbox, epoch, now, identifier))
    target = os.open(inbox, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.fsync(target)
    os.close(target)


def inbox(container, member):
    folder = "%s/members/%s/inbox/" % (container, escaped(member))
    for name in sorted(os.listdir(folder)):
        if name.count(",") == 4:
            with open(folder + name, "rb") as file:
                message = plistlib.loads(file.read(), fmt=plistlib.FMT_BINARY)
            headers = sorted(message.get("headers", {}).items())
            print(message["kind"], headers, message.get("value"))


def main():
    container, name, verb = sys.argv[1:4]
    if verb == "send":
        return send(container, name, sys.argv[4], dict(word.split("=", 1) for word in sys.argv[5:]))
    if verb == "inbox":
        return inbox(container, name)
    channel = container + "/channels/" + escaped(name)
    if verb == "read":
        print(value_of(read(channel)))
    else:
        for _ in range(int(sys.argv[4])):
            change(channel, add_one)


main()
