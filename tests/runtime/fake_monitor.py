"""Stands for the monitor: takes the socket, accepts ranks, notes what it was given, saves flight memories.

Everything it sees goes to FAKE_MONITOR_DIR: events.<pid> (one JSON object a line) and flight.<rank pid> (the newest copy
of that process's memory, also after its death).  It ends when all its ranks are gone.
FAKE_MONITOR: what it does differently: "refuse", "busy-once" (refuses the first as a monitor in its last seconds),
"stacks" (asks for stacks), "deaf" (starts and ends without listening).
"""
import array
import fcntl
import json
import mmap
import os
import select
import signal
import socket
import struct
import sys
import time

HELLO, WELCOME, REFUSE, STACKS = 1, 2, 3, 4
F_GET_SEALS = 1034
folder = os.environ["FAKE_MONITOR_DIR"]
behaviour = os.environ.get("FAKE_MONITOR", "")


def note(what, **more):
    with open(os.path.join(folder, "events.%d" % os.getpid()), "a") as out:
        out.write(json.dumps({"what": what, "monitor": os.getpid(), **more}) + "\n")


def message(kind, number=0, text=""):
    return struct.pack("<IIQ480s", kind, 1, number, text.encode())


def save(pid, memory):
    path = os.path.join(folder, "flight.%d" % pid)
    with open(path + ".new", "wb") as out:
        out.write(memory[:])
    os.replace(path + ".new", path)


def received(connection):
    try:
        return connection.recv(4096)
    except OSError:
        return b""


class Rank:
    def __init__(self, connection):
        self.connection = connection
        data, ancillary, _, _ = connection.recvmsg(4096, socket.CMSG_SPACE(12))
        fds = array.array("i")
        for _, _, raw in ancillary:
            fds.frombytes(raw[:len(raw) - len(raw) % 4])
        kind, version, _, _, self.pid, self.rank, world, restart, job, size, provisional, bits = struct.unpack("<IIQ480siiiiQQII", data)
        assert kind == HELLO and len(fds) == bin(bits).count("1")
        named = dict(zip([name for i, name in enumerate(("memory", "pidfd", "stderr")) if bits >> i & 1], fds))
        try:
            seals = fcntl.fcntl(named["memory"], F_GET_SEALS)
        except OSError:
            seals = None
        self.memory = mmap.mmap(named["memory"], size, prot=mmap.PROT_READ)
        self.pidfd = named.get("pidfd")
        self.stderr = named.get("stderr")
        note("hello", pid=self.pid, rank=self.rank, world=world, restart=restart, job="%016x" % job, size=size,
             provisional=provisional, bits=bits, seals=seals, file_size=os.fstat(named["memory"]).st_size,
             peer=struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])


def main():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    note("started", arguments=sys.argv[1:], preload=os.environ.get("LD_PRELOAD"), parent=os.getppid(), directory=os.getcwd(),
         group=os.getpgid(0), blocked=sorted(int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])))
    if behaviour == "deaf":
        return
    if "--socket-on-stdin" in sys.argv:
        listener = socket.socket(fileno=0)
    else:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            listener.bind("\0dshang-%d-%s" % (os.getuid(), sys.argv[3]))
        except OSError:
            note("lost")
            return
        listener.listen(64)
    ranks, refused, had_any, since = [], 0, False, time.monotonic()
    while ranks or not had_any and time.monotonic() - since < 10:
        waiting = [listener] + [r.pidfd for r in ranks if r.pidfd is not None] + [r.connection for r in ranks if r.connection]
        readable, _, _ = select.select(waiting, [], [], 0.05)
        for rank in ranks:
            save(rank.pid, rank.memory)
        if listener in readable:
            connection, _ = listener.accept()
            if behaviour == "refuse" or (behaviour == "busy-once" and not refused):
                refused += 1
                note("refused")
                connection.recv(4096)
                connection.send(message(REFUSE, 1 if behaviour == "busy-once" else 0, "not wanted here"))
                connection.close()
                if behaviour == "refuse":
                    return
                continue
            rank = Rank(connection)
            ranks.append(rank)
            had_any = True
            try:
                connection.send(message(WELCOME, text=folder))
                if behaviour == "stacks":
                    connection.send(message(STACKS, 7))
            except OSError:
                pass  # the rank is gone already
            save(rank.pid, rank.memory)
        for rank in list(ranks):
            if rank.pidfd in readable or rank.pidfd is None and rank.connection in readable:
                save(rank.pid, rank.memory)
                note("gone", pid=rank.pid)
                ranks.remove(rank)
            elif rank.connection in readable and not received(rank.connection):
                note("closed", pid=rank.pid)
                rank.connection = None


main()
