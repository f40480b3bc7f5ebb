"""Makes way for a compiler: what it would trace comes off, so that dshang adds no graph break."""


class Compiled:
    def __init__(self, probe):
        self.probe = probe
        self.gone = False

    def give_way(self):
        """A model is being compiled: no module visits from here on."""
        if self.gone:
            return
        self.gone = True
        self.probe.patches.undo("inner")
        self.probe.patches.guarded("facts", self.probe.native.note, "probe.visits", "off: the model is compiled")

    def watch(self, module):
        """torch._dynamo.convert_frame: asked for each frame before it is traced."""
        def make(original):
            def convert(catcher, *args, **kwargs):
                self.give_way()
                return original(catcher, *args, **kwargs)
            return convert
        self.probe.patches.replace(module.CatchErrorsWrapper, "__call__", make, optional=True)
