"""Threads blocked in different ways, their stacks written with the GIL and without it."""
import json
import os
import sys
import threading
import time

from rank import holding, lib, stacks

hold = sys.argv[1]          # "": the GIL is free; "sleep", "spin": the main thread keeps it
lib.deny_vm_read("pipe" in sys.argv)
tids, lines = {}, {}
lock = threading.Lock()
lock.acquire()
reader, writer = os.pipe()
stop = False


def in_sleep():
    tids["sleep"] = lib.own_thread(); lines["sleep"] = sys._getframe().f_lineno + 1
    time.sleep(60)


def in_lock():
    tids["lock"] = lib.own_thread(); lines["lock"] = sys._getframe().f_lineno + 1
    with lock:
        pass


def in_read():
    tids["read"] = lib.own_thread(); lines["read"] = sys._getframe().f_lineno + 1
    os.read(reader, 1)


def in_native_call():
    tids["native"] = lib.own_thread(); lines["native"] = sys._getframe().f_lineno + 1
    lib.wait_ms(60000)


def nested(n):
    return nested(n - 1) if n else in_native_call()


for work in (in_sleep, in_lock, in_read, lambda: nested(100)):
    threading.Thread(target=work, daemon=True).start()
while len(lines) < 4:
    time.sleep(0.01)
time.sleep(0.1)
tids["main"] = lib.own_thread()


def keep():
    lines["main"] = sys._getframe().f_lineno + 1
    holding.wait_for_stacks(hold == "spin")


if hold:
    lib.stacks_after(200, 5)
    keep()
else:
    lines["main"] = sys._getframe().f_lineno + 1
    lib.stacks(5)
found = {}
for request, tid, source, truncated, frames in stacks():
    name = [name for name in tids if tids[name] == tid]
    found[name[0] if name else str(tid)] = [request, source, truncated, frames]
print(json.dumps({"stacks": found, "lines": lines}), flush=True)
os._exit(0)
