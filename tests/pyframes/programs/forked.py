"""A process that is awake and armed forks; the child wakes with a flight memory of its own."""
import json
import os
import time

from rank import check, lib, problems, site_frames, stacks


def arm():
    for _ in range(2000):
        if lib.arm():
            return
        time.sleep(0.001)


def work():
    return check("work")


parent = work()
arm()
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    lib.asleep()
    lib.start()
    site, again = [work() for _ in range(2)]
    read = site_frames(site)
    arm()
    written = lib.stacks(1)
    text = json.dumps({"problems": problems, "function": read[1][1], "same": site == again, "state": lib.python_state(),
                       "stacks": written, "tid": stacks()[0][1] == os.getpid()})
    os.write(writer, text.encode())
    os._exit(0)
os.close(writer)
text = b"".join(iter(lambda: os.read(reader, 4096), b""))
os.waitpid(child, 0)
work()
print(json.dumps({"child": json.loads(text), "problems": problems}))
