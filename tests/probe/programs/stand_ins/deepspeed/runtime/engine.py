import types

from deepspeed.runtime.zero.partitioned_param_coordinator import PartitionedParameterCoordinator
from deepspeed.utils import debug


class DeepSpeedEngine:
    def __init__(self, model):
        self.module, self.optimizer = model, object()
        self.global_steps = self.micro_steps = 0
        self.coordinator = PartitionedParameterCoordinator()
        self._config = types.SimpleNamespace(_param_dict={"a": 1})
        for parameter in model.parameters():
            debug.param_names[parameter] = "own %d" % parameter.ds_id

    def parameters(self):
        return self.module.parameters()

    def zero_optimization_stage(self):
        return 3

    def gradient_accumulation_steps(self):
        return 1

    def train_micro_batch_size_per_gpu(self):
        return 2

    def forward(self, fail=False):
        if fail:
            return 1 // 0
        self.coordinator.reset_step()
        for _, module in self.module.named_modules():
            self.coordinator.fetch_sub_module(module, forward=True)

    def backward(self):
        self.coordinator.fetch_sub_module(self.module.parts[0][1], forward=False)

    def step(self):
        self.global_steps += 1
        self.micro_steps += 1

    def save_checkpoint(self):
        pass

    def compile(self):
        pass
