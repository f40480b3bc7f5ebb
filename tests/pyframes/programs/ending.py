"""The interpreter ends while daemon threads are inside native calls that read their call sites."""
import threading
import time

from rank import lib

for _ in range(4):
    threading.Thread(target=lib.bench, args=(2 ** 31 - 1,), daemon=True).start()
time.sleep(0.2)
lib.close_python()  # as the probe does at exit
print("{}")
