"""Many threads that read their call sites in code that comes and goes, while stacks are written."""
import gc
import json
import sys
import threading
import time

from rank import check, lib, problems, stacks

end = time.monotonic() + float(sys.argv[1])
stop = False


def work(number):
    n = 0
    while not stop and not problems:
        n += 1
        scope = {"check": check}
        source = "def f(n):\n" + "\n" * (n % 7) + "  return f(n - 1) if n else check('stress %d')\n" % number
        exec(compile(source, "/tmp/stress_%d.py" % (n % 3), "exec"), scope)
        scope["f"](n % 5)
        del scope
        if n % 50 == 0:
            gc.collect()


def short_lived():
    while not stop:
        thread = threading.Thread(target=lambda: [check("short") for _ in range(3)])
        thread.start()
        thread.join()


threads = [threading.Thread(target=work, args=(i,)) for i in range(8)] + [threading.Thread(target=short_lived)]
for thread in threads:
    thread.start()
requests = 0
while time.monotonic() < end or requests < 5:
    requests += 1
    lib.stacks(requests)
    time.sleep(0.01)
stop = True
for thread in threads:
    thread.join()
print(json.dumps({"problems": problems[:3], "state": lib.python_state(), "requests": requests,
                  "stacks": len(stacks())}))
