"""Backward, optimizer steps and saving of plain torch.  Under DeepSpeed these run inside phases of its engine."""


class Training:
    def __init__(self, probe):
        self.probe = probe

    def watch_torch(self, torch):
        probe = self.probe
        around, replace = probe.phases.around, probe.patches.replace
        replace(torch.autograd, "backward", around("backward", after=probe.memory.sample), "inner")
        replace(torch, "save", around("save"))
        replace(torch, "load", around("load"))

    def watch_optimizers(self, module):
        """torch.optim.optimizer"""
        probe = self.probe
        before = getattr(module, "register_optimizer_step_pre_hook", None)
        after = getattr(module, "register_optimizer_step_post_hook", None)
        if before is None or after is None:
            probe.patches.skip("optimizer steps", "torch before 2.0")
            return

        def step_begins(optimizer, *_):
            probe.patches.guarded("optimizer steps", probe.phases.push, "optimizer")

        def step_ends(optimizer, *_):
            probe.patches.guarded("optimizer steps", self._step_ends, optimizer)
        for handle in (before(step_begins), after(step_ends)):
            probe.patches.on_undo(handle.remove)

    def _step_ends(self, optimizer):
        probe = self.probe
        if probe.steps.engine is None:
            probe.phases.pop("optimizer")
            probe.steps.optimizer_done(optimizer)
            probe.memory.sample()

    def watch_distributed(self, module):
        """torch.distributed, and where its functions are defined"""
        native, guarded = self.probe.native, self.probe.patches.guarded

        def make(original):
            def destroy_process_group(group=None, *args, **kwargs):
                if group is None:
                    guarded("teardown", native.teardown, 0)
                return original(group, *args, **kwargs)
            return destroy_process_group
        self.probe.patches.replace(module, "destroy_process_group", make, optional=True)
