"""Stands where libdshang.so stands: writes down what the probe says, with texts instead of numbers."""


class FakeNative:
    def __init__(self):
        self.texts = [""]
        self.said = []                # (what, ...)

    def intern(self, text):
        assert isinstance(text, str) and text
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text)

    def _say(self, *what):
        self.said.append(what)

    def visit(self, module, phase, training):
        assert training in (0, 1)
        self._say("visit", self.texts[module], self.texts[phase], training)

    def exit_module(self):
        self._say("exit_module")

    def step(self, step):
        self._say("step", step)

    def micro_step(self, micro):
        self._say("micro_step", micro)

    def phase_push(self, phase):
        self._say("push", self.texts[phase])

    def phase_pop(self):
        self._say("pop")

    def gather(self, params, text):
        assert 0 < params < 2 ** 64
        self._say("gather", params, self.texts[text])

    def note(self, key, value):
        assert isinstance(key, str) and isinstance(value, str)
        self._say("note", key, value)

    def exception(self, kind, message, file, function, line):
        self._say("exception", self.texts[kind], self.texts[message], file, function, line)

    def loop_end(self, length):
        self._say("loop_end", length)

    def trace_mode(self, mode):
        self._say("trace_mode", self.texts[mode])

    def teardown(self, last):
        self._say("teardown", last)

    def memory(self, reserved, allocated):
        self._say("memory", reserved, allocated)

    def memory_phase(self, phase, peak, reserved, allocated):
        self._say("memory_phase", self.texts[phase], peak, reserved, allocated)

    def batch(self, *sizes):
        assert 1 <= len(sizes) <= 4 and all(isinstance(size, int) for size in sizes)
        self._say("batch", *sizes)

    def of(self, *kinds):
        return [what for what in self.said if what[0] in kinds]

    def skipped(self):
        return [what for what in self.said if what[0] == "note" and what[1].startswith("probe.skipped")]
