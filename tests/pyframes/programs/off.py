"""One call site and the arming, with switches from outside."""
import json
import sys
import time

from rank import lib

if "getframe" in sys.argv:
    real = sys._getframe

    def getframe(depth=0):
        return real(2 if depth == 0 and real(1).f_code.co_name == "compare" else depth + 1)
    sys._getframe = getframe
site = lib.site()
for _ in range(1000):
    if lib.arm():
        break
    time.sleep(0.001)
print(json.dumps({"site": site, "after": lib.site(), "state": lib.python_state(),
                  "probe": "dshang_probe" in sys.modules}))
