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
        return cuda.memory_stats()

    def sample(self, *_):
        """At the ends of phases, where the memory of a step is highest."""
        self.patches.guarded("memory", self._sample)

    def _sample(self):
        stats = self._read()
        if not stats:
            return
        self.reserved = max(self.reserved, stats.get("reserved_bytes.all.current", 0))
        self.allocated = max(self.allocated, stats.get("allocated_bytes.all.current", 0))
        peak = stats.get("allocated_bytes.all.peak", 0)
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
