"""What torch's caching allocator held in each step.  Read on the host, no device call."""
import os
import sys

_SETTINGS = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")     # torch reads the first that is set


class Memory:
    def __init__(self, native, patches, names):
        self.native, self.patches, self.names = native, patches, names
        self.reserved = self.allocated = 0    # largest seen since the step began
        self.top = 0                          # torch's own peak at the last step
        self.noted = False

    def _note_settings(self):
        """How the allocator was told to work, once it does."""
        self.noted = True
        text = next(filter(None, map(os.environ.get, _SETTINGS)), None)
        if text:
            self.native.note("torch.allocator", text.replace(" ", "")[:300])

    def _read(self):
        cuda = sys.modules.get("torch.cuda")
        if cuda is None or not cuda.is_initialized():
            return None
        if not self.noted:
            self._note_settings()
        return cuda.memory_stats_as_nested_dict()     # memory_stats() flattens it, which takes ten times as long

    def sample(self, phase):
        """At the end of a phase, where the memory of a step is highest."""
        self.patches.guarded("memory", self._sample, phase)

    def at_end_of(self, phase):
        return lambda *_: self._sample(phase)

    def _sample(self, phase=None):
        stats = self._read()
        if not stats:
            return
        allocated, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]["current"]
        now, peak = allocated["current"], allocated["peak"]
        most = now
        if peak > self.top:                   # torch's peak moved: that of this phase is exactly known
            self.top = most = peak
        elif peak < self.top:                 # the job reset it
            self.top = peak
        self.reserved = max(self.reserved, reserved)
        self.allocated = max(self.allocated, most)
        if phase is not None:
            self.native.memory_phase(self.names.intern(phase), most, reserved, now)

    def step_ends(self):
        self.patches.guarded("memory", self._step_ends)

    def _step_ends(self):
        self._sample()
        if self.reserved:
            self.native.memory(self.reserved, self.allocated)
        self.reserved = self.allocated = 0
