"""DeepSpeed's engine: phases, steps, configuration.  Methods of the class are replaced, so that every engine has them."""
import sys

from dshang_probe import facts


class Engine:
    def __init__(self, probe):
        self.probe = probe

    def watch(self, module):
        """deepspeed.runtime.engine"""
        probe, engine = self.probe, module.DeepSpeedEngine
        replace, around, memory = probe.patches.replace, probe.phases.around, probe.memory
        replace(engine, "__init__", around("init", after=self._created))
        replace(engine, "forward", around("forward", before=probe.steps.engine_forward, after=self._forward_done))
        replace(engine, "backward", around("backward", after=memory.sample))
        replace(engine, "step", around("optimizer", after=memory.sample))
        for name in ("save_checkpoint", "save_16bit_model", "_zero3_consolidated_16bit_state_dict"):
            replace(engine, name, around("save"), optional=True)
        for name in ("load_checkpoint", "load_module_state_dict"):
            replace(engine, name, around("load"), optional=True)
        replace(engine, "compile", self._around_compile, optional=True)

    def _created(self, engine, *_):
        probe = self.probe
        probe.names.add_model(engine.module)
        probe.names.add_unrecorded(engine)
        if engine.zero_optimization_stage() == 3:
            probe.modules.remove()            # the coordinator tells the visits, backward ones too
        probe.patches.guarded("facts", facts.note_deepspeed, probe.native, sys.modules["deepspeed"])
        probe.patches.guarded("facts", facts.note_engine, probe.native, engine)

    def _forward_done(self, *_):
        self.probe.native.exit_module()
        self.probe.memory.sample()

    def _around_compile(self, original):
        def compile(engine, *args, **kwargs):
            self.probe.compiled.give_way()
            return original(engine, *args, **kwargs)
        return compile
