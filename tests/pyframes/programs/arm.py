"""Arms the little probe, uses it and prints what lies in flight memory."""
import json
import sys
import threading
import time

from rank import lib, site_frames

before = set(sys.modules)
answers = []


def helper_thread():
    while not answers or not answers[-1]:
        answers.append(lib.arm())
        time.sleep(0.01)


thread = threading.Thread(target=helper_thread)
thread.start()
while thread.is_alive():
    time.sleep(0.001)
import dshang_probe
added = sorted(set(sys.modules) - before)
dshang_probe.say_everything()


def training():
    line = sys._getframe().f_lineno + 1
    wrapped()
    return line


@dshang_probe.helper.wrapped
def wrapped():
    return check_inside()


def check_inside():
    site = lib.site()
    return site_frames(site)


inside = wrapped()
line = training()
print(json.dumps({
    "answers": answers, "asked": dshang_probe.asked, "added": added, "state": lib.python_state(),
    "visits": [row.split("\t") for row in lib.visits_text().decode().splitlines()],
    "facts": lib.facts_text().decode().splitlines(), "exceptions": lib.exceptions_text().decode().splitlines(),
    "inside": inside, "line": line}))
