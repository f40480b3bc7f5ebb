"""What the device holds, looked at without waiting for it: copied into pinned memory, read once the copy's event is done.

Nothing is copied or asked for while a CUDA graph is being captured: it would become a part of the graph, or end the
capture.  A copy that has not come when its place is needed again is not waited for: what follows is left out."""
import threading
from collections import deque

_MOST_OPEN = 256              # copies under way: a device that stands still
_PLACE = 16                   # bytes of one number


class Later:
    def __init__(self, probe):
        self.probe = probe
        self.open = deque()           # (device, event, function), the oldest first
        self.spare = {}               # device: events
        self.places = None            # pinned memory for single numbers
        self.free = []                # offsets in it
        self.views = {}               # (offset, type): the place as a tensor of that type
        self.captures = 0
        self.failed = False           # the device has failed: every question raises
        self.lock = threading.Lock()

    def watch_graphs(self, module):
        """torch.cuda.graphs"""
        def on_begin(original):
            def capture_begin(graph, *args, **kwargs):
                self.captures += 1
                try:
                    return original(graph, *args, **kwargs)
                except BaseException:
                    self.captures -= 1
                    raise
            return capture_begin

        def on_end(original):
            def capture_end(graph, *args, **kwargs):
                try:
                    return original(graph, *args, **kwargs)
                finally:
                    self.captures = max(0, self.captures - 1)
            return capture_end
        replace = self.probe.patches.replace
        if replace(module.CUDAGraph, "capture_begin", on_begin, optional=True):
            replace(module.CUDAGraph, "capture_end", on_end)

    def possible(self):
        """Whether something may be copied from the device now."""
        cuda = self.probe.torch.cuda
        return not (self.failed or self.captures or len(self.open) >= _MOST_OPEN) and cuda.is_initialized() and \
            not cuda.is_current_stream_capturing()

    def look(self, value, function):
        """function(the number as a float): now where the host holds it, else at a later poll(), or not at all."""
        torch = self.probe.torch
        if isinstance(value, (int, float)):
            function(float(value))
        elif type(value) is torch.Tensor and value.numel() == 1 and not value.is_complex():
            if value.device.type == "cpu":
                function(float(value.detach()))
            elif value.device.type == "cuda" and self.possible():
                self._look(value.detach().reshape(()), function)

    def _look(self, value, function):
        if self.places is None:
            torch = self.probe.torch
            self.places = torch.empty(_PLACE * _MOST_OPEN, dtype=torch.uint8, device="cpu", pin_memory=True)
            self.free = [_PLACE * number for number in range(_MOST_OPEN)]
        if not self.free:
            return
        at = self.free.pop()
        place = self.views.get((at, value.dtype))
        if place is None:
            place = self.places[at:at + value.element_size()].view(value.dtype)[0]
            self.views[at, value.dtype] = place
        place.copy_(value, non_blocking=True)

        def read():
            number = float(place)
            self.free.append(at)
            function(number)
        self.when_copied(value.device, read)

    def when_copied(self, device, function):
        """function() at a later poll(), when all that is queued on the device's current stream now has run."""
        cuda = self.probe.torch.cuda
        spare = self.spare.setdefault(device, [])
        event = spare.pop() if spare else cuda.Event()
        event.record(cuda.current_stream(device))
        self.open.append((device, event, function))

    def poll(self):
        """Looks at what has come."""
        if self.open:
            self.probe.patches.guarded("values", self._poll)

    def _poll(self):
        if self.captures or self.probe.torch.cuda.is_current_stream_capturing() or not self.lock.acquire(False):
            return
        try:
            while self.open and self._is_done(self.open[0][1]):
                device, event, function = self.open.popleft()
                self.spare[device].append(event)
                self.probe.patches.guarded("values", function)
        finally:
            self.lock.release()

    def _is_done(self, event):
        try:
            return event.query()
        except RuntimeError:                          # the device has failed, which the job itself will be told
            self.failed = True
            self.open.clear()
            return False
