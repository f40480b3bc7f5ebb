"""Call sites of every kind of code, each compared with sys._getframe; prints what differed."""
import asyncio
import functools
import json
import threading

from rank import INNERMOST, WALKED, check, lib, problems, site_frames


def plain():
    check("plain")


def outer():
    def inner():
        check("nested")
    inner()


def generator():
    check("generator, first part")
    yield 1
    check("generator, resumed")
    yield 2


def delegating():
    yield from generator()


async def coroutine():
    check("coroutine")
    await asyncio.sleep(0)
    check("coroutine, resumed")
    async for _ in asynchronous():
        check("body of async for")


async def asynchronous():
    for i in range(2):
        check("async generator")
        yield i


class Model:
    def method(self):
        check("method")

    @classmethod
    def of_class(cls):
        check("class method")

    @staticmethod
    def static():
        check("static method")

    @property
    def attribute(self):
        check("property")
        return 1

    def __enter__(self):
        check("__enter__")

    def __exit__(self, *exception):
        check("__exit__")

    def __getattr__(self, name):
        check("__getattr__")
        return 1

    def __del__(self):
        check("__del__")


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(
            *args,
            **kwargs
        )
    return wrapper


@decorated
@decorated
def behind_decorators(text):
    check(text)


def several_lines():
    check(
        "call over "
        "several lines"
    ); behind_decorators(
        "after "
        "a semicolon"
    )
    return [
        check("in a list"),
        check(
            "in a list, below"),
    ]


def control_flow():
    try:
        raise ValueError("x")
    except ValueError:
        check("except")
    finally:
        check("finally")
    for _ in range(2):
        if check("in a condition") and not \
                check("continued line"):
            pass
    while check("while"):
        break
    (lambda: check("lambda"))()
    [check("comprehension") for _ in range(1)]
    {check("set comprehension"): check("value") for _ in range(1)}
    list(map(lambda _: check("called from C"), [1]))
    sorted([2, 1], key=lambda x: check("key function"))


def deep():
    # A file of its own for each depth: stacks with the same innermost frames are one site.
    source = "def down(n):\n  if n:\n    return down(n - 1)\n  return check('depth', most=%d)\n" % INNERMOST
    for depth in (20, 40, 58, 70, 85, 300):
        scope = {"check": check}
        exec(compile(source, "/tmp/depth_%d.py" % depth, "exec"), scope)
        read = site_frames(scope["down"](depth))
        if depth + 10 < WALKED and read[-1][1] != "<module>":
            problems.append("deep: the outermost frame was not kept: %r" % (read[-1],))


def user_frame_in_the_middle():
    """A gather inside a module of the user's: library code below it, and above it the nested modules and the loop."""
    library = ("def call(inside, *rest):\n"
               "  return inside(*rest)\n"
               "def nest(n, inside, *rest):\n"
               "  return call(nest, n - 1, inside, *rest) if n else inside(*rest)\n")
    user = "def forward(nest, check):\n\n  return nest(15, check, 'user frame in the middle')\n"
    torch, model = {}, {}
    exec(compile(library, "/env/lib/site-packages/torch/nn/modules/module.py", "exec"), torch)
    exec(compile(user, "/home/somebody/model.py", "exec"), model)

    def train_step():
        return torch["nest"](12, model["forward"], torch["nest"], check)

    read = site_frames(train_step())
    places = [(file, function, line) for file, function, line in read]
    if len(places) < 55:
        problems.append("the stack of the middle case has %d frames only" % len(places))
    at = [i for i, place in enumerate(places) if place == ("/home/somebody/model.py", "forward", 3)]
    if not at or not 25 <= at[0] <= len(places) - 20:
        problems.append("the user's frame is not in the middle: %r of %d" % (at, len(places)))
    if not any(function.endswith("train_step") for _, function, _ in places[at[0] if at else 0:]):
        problems.append("the training loop is not there")


def executed():
    source = "\n" * 500 + "check('exec')\n\n\ndef made():\n    check('function made by exec')\nmade()\n"
    exec(compile(source, "<string>", "exec"), {"check": check})
    eval(compile("check('eval')", "/some/where/named.py", "eval"), {"check": check})
    source = "class A:\n  x = 1\n  check('class body')\n"
    exec(compile(source, "/näh/größe_ж_漢字_😀.py", "exec"), {"check": check})
    source = "def фун():\n  check('name beyond ASCII')\nфун()\n"
    exec(compile(source, "long/" * 60 + "end.py", "exec"), {"check": check})


def big_function():
    # Offsets beyond one byte, lines far apart, jumps back.
    lines = ["def big(n):", "  x = 0"]
    for i in range(300):
        lines.append("  if n == %d:" % i)
        lines.append("    x = [x,")
        lines.append("      n,")
        lines.append("      check('big %d')]" % i)
        lines.extend([""] * (i % 7) * 40)
        lines.append("  x = {'a': x, 'b': [x, x, x]}")
    scope = {"check": check}
    exec(compile("\n".join(lines), "/tmp/big.py", "exec"), scope)
    for i in range(0, 300, 13):
        scope["big"](i)


def freed_code():
    # The same names and first line at addresses that are used again and again, the call on another line each time.
    for i in range(400):
        source = "def again():\n" + "\n" * (i % 37) + "  check('freed %d')\nagain()\n" % i
        exec(compile(source, "/tmp/%s.py" % ("one" if i % 3 else "two"), "exec"), {"check": check})


def same_code_again():
    # Compiled anew each time: other code objects, the same lines.
    source = "def f():\n  return check('compiled anew')\nsite = f()\n"
    sites = set()
    for _ in range(50):
        scope = {"check": check}
        exec(compile(source, "/tmp/anew.py", "exec"), scope)
        sites.add(scope["site"])
    if len(sites) != 1:
        problems.append("code compiled anew gave %d sites" % len(sites))


def in_threads():
    def work():
        check("thread")
        outer()
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def same_place_same_site():
    sites = {check("a loop") for _ in range(5)}
    if len(sites) != 1:
        problems.append("one place gave %d sites" % len(sites))
    one = check("one line")
    if one == check("another line"):
        problems.append("two places gave one site")


def main():
    for case in (plain, outer, lambda: list(generator()), lambda: list(delegating()), lambda: asyncio.run(coroutine()),
                 lambda: Model().method(), Model.of_class, Model.static, lambda: Model().attribute,
                 lambda: Model().missing, lambda: behind_decorators("decorators"), several_lines, control_flow, deep,
                 user_frame_in_the_middle,
                 executed, big_function, freed_code, same_code_again, in_threads, same_place_same_site):
        case()
    with Model():
        check("with")


main()
check("module")
print(json.dumps({"problems": problems, "state": lib.python_state()}))
