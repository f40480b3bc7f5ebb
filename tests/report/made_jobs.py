"""Jobs made up as text (tests/golden's form), for pages and traces: a thousand ranks, memory that runs out, names that bite."""
HOSTILE = "</script><script>document.title='owned'</script><!--<img src=x onerror=alert(1)>&amp;'\u2028"


def _quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def thousand(ranks=1024, steps=4, layers=4, odd=517):
    """Gathers and reductions of a sharded model; in the last step rank `odd` leaves out layers.2.  All layers have one
    size, so that its calls still pair up with others until the backward pass."""
    lines = []
    for rank in range(ranks):
        lines += [f"rank {rank} pid {1000 + rank} world {ranks} host node-{rank // 8:03d}",
                  'site fwd "model.py:31 forward | train.py:12 step | train.py:40 main"',
                  'site grad "train.py:14 step | train.py:40 main"',
                  'site tp "tensor_parallel.py:77 all_reduce | model.py:35 forward | train.py:12 step | train.py:40 main"',
                  "comm c0 id=0x11", f"comm c1 id={hex(0x1000 + rank // 8)} size=8 rank={rank % 8}"]
        clock = Clock(lines, 1.0 + (rank * 7919 % 997) / 1e6)
        for step in range(1, steps + 1):
            last = step == steps
            clock.say(f"visit step {step}")
            clock.say("visit phase_push forward")
            for layer in range(layers):
                if last and layer == 2 and rank == odd:
                    continue
                clock.say(f"visit module_enter layers.{layer} site=fwd")
                clock.call("all_gather 4096 bf16 site=fwd", 0.003)
                if layer < 2:
                    clock.call("all_reduce 8192 bf16 sum comm=c1 site=tp", 0.0015)
                clock.say("visit module_exit")
            clock.say("visit phase_pop")
            clock.say("visit phase_push backward")
            for layer in reversed(range(layers)):
                clock.say(f"visit module_enter layers.{layer}")
                if last and rank != odd:
                    clock.call("all_gather 4096 bf16 site=grad")
                    break
                clock.call("all_gather 4096 bf16 site=grad", 0.003)
                clock.call("reduce_scatter 4096 bf16 avg site=grad", None if last else 0.004)
                if last:
                    break
                clock.say("visit module_exit")
            else:
                clock.say("visit phase_pop")
                clock.call("all_reduce 1 f32 sum site=grad", 0.001)
        lines.append("")
    return "\n".join(lines)


class Clock:
    """Gives each line its time; calls take theirs, or wait."""

    def __init__(self, lines, at):
        self.lines, self.at = lines, at

    def say(self, line):
        self.lines.append(f"{line} at={self.at:.6f}")

    def call(self, what, seconds=None):
        if seconds is None:
            self.lines.append(f"call {what} queued at={self.at:.6f}")
            return
        self.lines.append(f"call {what} at={self.at:.6f} started={self.at + 0.0002:.6f} done={self.at + seconds:.6f}")
        self.at += seconds + 0.001


def memory(ranks=4, steps=60, odd=2):
    """Longer and longer batches on one rank, until a request fails; the others wait for it."""
    gib = 1 << 30
    lines = []
    for rank in range(ranks):
        lines += [f"rank {rank} pid {200 + rank} world {ranks} host a", "fact device.memory_total 85899345920", "comm world",
                  'site step "train.py:14 step | train.py:40 main"', 'site attention "attention.py:88 forward | train.py:12 step | train.py:40 main"']
        for step in range(1, steps + 1):
            at = step * 0.5
            lines.append(f"visit step {step} at={at}")
            if step > 1:
                wave = (step * 7 + rank * 3) % 5 * 0.4
                need = 48 + wave + (max(0, step - 30) * 0.9 if rank == odd else 0)
                need = int(min(need, 77) * gib)
                reserved = min(int(79 * gib), need + 3 * gib)
                lines.append(f"memory step={step - 1} at={at} device={reserved} device_peak={reserved} reserved_peak={reserved} allocated_peak={need}")
            if step < steps:
                lines.append(f"call all_reduce 1000000 bf16 sum at={at + 0.3} started={at + 0.3} done={at + 0.45} site=step")
            elif rank == odd:
                lines.append(f"alloc_failed 6442450944 free=2147483648 total=85899345920 live=83000000000 result=2 at={at + 0.2} site=attention phase=forward")
                lines.append(f"call all_gather 77 f32 at={at + 0.35} queued site=step")
            else:
                lines.append(f"call all_reduce 1000000 bf16 sum at={at + 0.3} queued site=step")
        lines.append("")
    return "\n".join(lines)


def hostile(ranks=3):
    """Everything that a rank can name is made to break out of the page."""
    bites = _quoted(HOSTILE)
    lines = []
    for rank in range(ranks):
        lines += [f"rank {rank} pid {300 + rank} world {ranks} host {bites}", "comm world", f"fact {bites} {bites}",
                  f"site bites {_quoted('<b>x.py:3 </script><i>f | train.py:2 main')}"]
        for step in (1, 2):
            lines += [f"visit step {step}", f"visit phase_push {bites}", f"visit module_enter {bites} site=bites",
                      "call all_gather 10 f32 site=bites", "visit module_exit", "visit phase_pop"]
        lines += ["visit step 3", f"exception {bites} {bites}" if rank == 1 else "",
                  f"call {'all_gather 11' if rank == 1 else 'all_gather 10'} f32 site=bites queued", ""]
    return "\n".join(lines)
