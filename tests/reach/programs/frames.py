"""Calls from every kind of frame that Python has, for so many seconds: frames.py SECONDS.

The count of a call is the line that makes it, so that each record says which site it must have.  Rank 0 waits for rank 1 all
the time, which does all this; so the monitor asks for stacks meanwhile.  The last line is a JSON object: what was done how
often, and the function of each line.
"""
import asyncio
import gc
import json
import random
import sys
import threading
import time

from gpu import Gpu, os

try:
    import greenlet
except ImportError:
    greenlet = None

process = Gpu()
world = process.meet()
stream = process.stream()
done, problems, callers = {}, [], {}
lock = threading.RLock()            # a collection that happens under it may come here again
places = []                         # communicators that no thread is using


class Place:
    def __init__(self):
        self.comm, self.stream, self.address, self.calls = process.communicator(), process.stream(), process.malloc(4096), 0

    def call(self, count):
        self.calls += 1
        if self.calls % 50 == 0:
            process.sync(self.stream)
        return process.ncclAllReduce(self.address, self.address, count, 7, 0, self.comm, self.stream)


def reduce():
    """By the line that calls it."""
    frame = sys._getframe(1)
    line = frame.f_lineno
    callers[line] = frame.f_code.co_name
    try:
        place = places.pop()
    except IndexError:
        place = Place()
    result = place.call(line)
    places.append(place)
    assert result == 0, result


# ---- kinds of frames; each makes a few calls ------------------------------------------------------------------------------

def leaf(depth):
    if depth:
        yield from leaf(depth - 1)
    reduce()
    yield depth


def thrown():
    try:
        yield
    except ValueError:
        reduce()
        yield


def generators():
    for _ in leaf(5):
        reduce()
    half = leaf(9)
    next(half)                      # is left suspended, and collected
    other = thrown()
    next(other)
    other.throw(ValueError())
    sum(1 for _ in (reduce() for _ in range(2)))


async def awaited(depth):
    if depth % 2:
        await asyncio.sleep(0)
    if depth:
        await awaited(depth - 1)
    reduce()


async def produced():
    for _ in range(3):
        await asyncio.sleep(0)
        reduce()
        yield


async def consumed():
    async for _ in produced():
        reduce()


def coroutines():
    async def all_of_them():
        await asyncio.gather(awaited(4), awaited(3), consumed())
    loop = asyncio.new_event_loop()
    loop.run_until_complete(all_of_them())
    loop.close()


def green_leaf(depth):
    if depth:
        return green_leaf(depth - 1)
    reduce()
    greenlet.getcurrent().parent.switch()
    reduce()


def greenlets():
    many = [greenlet.greenlet(green_leaf) for _ in range(5)]
    for depth, one in enumerate(many):
        one.switch(depth)
        reduce()
    random.shuffle(many)
    for one in many[1:]:
        one.switch()
    del many                        # one is killed in the middle


def short_thread():
    reduce()


def short_threads():
    threads = [threading.Thread(target=short_thread) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def made(source="def f(n):\n    return f(n - 1) if n else reduce()\n"):
    """Code that is freed right after its call; it has no line of this file."""
    scope = {"reduce": lambda: reduce()}
    exec(compile(source, "<made>", "exec"), scope)
    scope["f"](random.randrange(20))
    scope.clear()


class Attribute:
    @property
    def value(self):
        return reduce()

    def __del__(self):
        reduce()


def called_back():
    Attribute().value
    sorted(range(3), key=lambda _: reduce() or 0)
    gc.collect(0)


KINDS = [generators, coroutines, made, called_back] + ([greenlets] if greenlet else [])


def work(end, kinds):
    try:
        while time.monotonic() < end and not problems:
            kind = random.choice(kinds)
            kind()
            with lock:
                done[kind.__name__] = done.get(kind.__name__, 0) + 1
    except BaseException as problem:
        problems.append(repr(problem))


def several(end):
    try:
        while time.monotonic() < end and not problems:
            short_threads()
            with lock:
                done["short_threads"] = done.get("short_threads", 0) + 1
    except BaseException as problem:
        problems.append(repr(problem))


def main():
    end = time.monotonic() + float(sys.argv[1])
    # Each kind at least once, wherever the time goes.
    for kind in KINDS + [short_threads]:
        kind()
        done[kind.__name__] = done.get(kind.__name__, 0) + 1
    threads = [threading.Thread(target=work, args=(end, KINDS)) for _ in range(3)] + [threading.Thread(target=several, args=(end,))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for kind in KINDS:              # so that the newest records hold each
        kind()


def goes_on():
    while True:
        reduce()
        time.sleep(0.001)


if __name__ == "__main__":
    rank = int(os.environ["RANK"])
    if rank == 1:
        main()
    process.all_reduce(world, stream)
    process.sync(stream)
    print(json.dumps({"done": done, "problems": problems, "callers": callers}), flush=True)
    if rank == 1:
        # The interpreter ends while threads make calls.
        for _ in range(3):
            threading.Thread(target=goes_on, daemon=True).start()
        time.sleep(0.05)
