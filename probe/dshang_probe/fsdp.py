"""FSDP2: the modules visited in backward, where parameters are gathered without any frame of the user; and the
ranks that share a model."""

from dshang_probe import facts


class Fsdp:
    def __init__(self, probe):
        self.probe = probe
        self.ranks_noted = False

    def watch(self, module):
        """torch.distributed.fsdp._fully_shard._fsdp_param_group"""
        self.probe.patches.replace(module.FSDPParamGroup, "pre_backward", self._around_pre_backward, "inner",
                                   optional=True)
        self.probe.patches.replace(module.FSDPParamGroup, "__init__", self._around_init)

    def _around_init(self, original):
        def init(group, *args, **kwargs):
            original(group, *args, **kwargs)
            self.probe.patches.guarded("data-parallel ranks", self._note_ranks, group)
        return init

    def _note_ranks(self, group):
        if not self.ranks_noted and not self.probe.engine.adopted:
            self.ranks_noted = True
            facts.note_data_parallel(self.probe.native, getattr(group.mesh_info, "shard_process_group", None))

    def _around_pre_backward(self, original):
        probe = self.probe
        names, visit, skip = probe.names, probe.native.visit, probe.patches.skip
        backward_id = names.intern("backward")

        def pre_backward(group, *args, **kwargs):
            try:
                modules = getattr(group, "modules", ())
                known = names.of_module(modules[0]) if modules else None
                if known is not None and known.id:
                    visit(known.id, backward_id, 1 if modules[0].training else 0)
                if not self.ranks_noted:              # it was made before the probe was armed
                    self._note_ranks(group)
            except Exception as error:
                skip("backward visits of FSDP", error)
            return original(group, *args, **kwargs)
        return pre_backward
