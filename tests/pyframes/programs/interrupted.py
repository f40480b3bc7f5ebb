"""A time-out of the program is raised while the Python side is armed."""
import json
import sys
import time

from rank import lib

real, late, surfaced = sys._getframe, [], 0


def getframe(depth=0):
    if not late:
        late.append(True)
        raise TimeoutError
    return real(depth + 1)


sys._getframe = getframe
for _ in range(1000):
    try:
        if lib.arm():
            break
        time.sleep(0.001)
    except TimeoutError:
        surfaced += 1
print(json.dumps({"surfaced": surfaced, "state": lib.python_state(), "probe": "dshang_probe" in sys.modules}))
