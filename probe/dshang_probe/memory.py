"""What torch's caching allocator held in each step.  Read on the host, no device call."""
import sys


class Memory:
    def __init__(self, native, patches):
        self.native, self.patches = native, patches
        self.reserved = self.allocated = 0    # largest seen since the step began
        self.top = 0                          # torch's own peak at the last step

    def _read(self):
        cuda = sys.modules.get("torch.cuda")
        if cuda is None or not cuda.is_initialized():
            return None
        return cuda.memory_stats_as_nested_dict()     # memory_stats() flattens it, which takes ten times as long

    def sample(self, *_):
        """At the ends of phases, where the memory of a step is highest."""
        self.patches.guarded("memory", self._sample)

    def _sample(self):
        stats = self._read()
        if not stats:
            return
        allocated = stats["allocated_bytes"]["all"]
        self.reserved = max(self.reserved, stats["reserved_bytes"]["all"]["current"])
        self.allocated = max(self.allocated, allocated["current"])
        peak = allocated["peak"]
        if peak > self.top:                   # torch's peak moved: this step's peak is exactly known
            self.top = peak
            self.allocated = max(self.allocated, peak)
        elif peak < self.top:                 # the job reset it
            self.top = peak

    def step_ends(self):
        self.patches.guarded("memory", self._step_ends)

    def _step_ends(self):
        self._sample()
        if self.reserved:
            self.native.memory(self.reserved, self.allocated)
        self.reserved = self.allocated = 0
