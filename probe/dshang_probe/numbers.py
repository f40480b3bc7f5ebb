"""Losses, gradient norms and loss scales of the training steps, and what of them is worth telling: the first that is not
finite, a norm far above the usual ones, a loss scale that changes.

Facts are few, so the history stays here and only what stands out of it is noted, with what was usual before.  Every
note is "<word>=<value> ..." (detectors/number_facts.h)."""
import sys
from collections import deque

from dshang_probe.digest import is_finite, median

_WINDOW = 50                  # norms and losses that say what is usual
_LEAST = 16                   # before that many nothing is unusual
_TIMES_MEDIAN, _TIMES_LARGEST = 10, 4
_AFTER = 8                    # steps behind a jump that say whether it stays
_MOST_JUMPS = 8
_MOST_RECOVERIES = 16         # notes of losses that are finite again
_MOST_SCALES = 64             # notes of a scale that changes
_SCALES_SHOWN = 12


def text_of(value):
    """A number as it is noted: "nan", "inf", "0.00012345"."""
    return "%.6g" % value


class Numbers:
    def __init__(self, probe):
        self.probe = probe
        self.limit = _simulated()
        self.losses, self.norms = deque(maxlen=_WINDOW), deque(maxlen=_WINDOW)
        self.of_step = {}             # step: the largest loss of its micro-steps
        self.good = self.bad = 0      # losses
        self.recovered, self.recoveries = True, 0
        self.bad_norm = self.bad_evaluation = False
        self.kinds = "model=- autocast=-"     # of the newest training forward
        self.scaled = False           # a loss scale that adapts: norms that are not finite are its business
        self.scale = None
        self.jumps = []               # [key, steps left, norms, losses, usual norm]
        self.high = []                # [key, usual norm, norms in a row that were usual again] of jumps that stayed
        self.jumps_told = 0
        self.changes, self.scale_notes, self.falls, self.steps_made, self.skipped = [], 0, 0, 0, 0
        self.floor = self.start = self.first_made = None

    # ---- what a model computes in ------------------------------------------------------------------------------

    def forward_begins(self, model):
        """A training forward of a whole model."""
        if self.limit is not None and self.probe.numerics:
            sizes = (getattr(parameter, "ds_numel", parameter.numel()) for parameter in model.parameters())
            self.probe.numerics = sum(sizes) <= self.limit
        if self.probe.numerics:
            self.kinds = self._kinds(model)
            self.probe.watch.forward_begins(model)

    def _kinds(self, model):
        torch = self.probe.torch
        first = next(iter(model.parameters()), None)
        autocast = "-"
        if torch.is_autocast_enabled():
            of_device = getattr(torch, "get_autocast_dtype", None)
            autocast = of_device("cuda") if of_device is not None else torch.get_autocast_gpu_dtype()
        return "model=%s autocast=%s" % (_short(first.dtype) if first is not None else "-", _short(autocast))

    # ---- losses ------------------------------------------------------------------------------------------------

    def loss(self, loss):
        """What backward begins from."""
        if not self.probe.numerics:
            return
        if isinstance(loss, (tuple, list)) and len(loss) == 1:
            loss = loss[0]
        self.probe.watch.forward_ends()
        if not hasattr(loss, "numel") or loss.numel() != 1:
            return
        steps, kinds, kind = self.probe.steps, self.kinds, _short(loss.dtype)
        step, micro = steps.announced, steps.micro
        self.probe.later.look(loss, lambda value: self._loss_came(step, micro, value, "%s loss=%s" % (kinds, kind)))

    def _loss_came(self, step, micro, value, kinds):
        note = self.probe.native.note
        if is_finite(value):
            self.good += 1
            self.losses.append(value)
            self._keep(self.of_step, step, max(value, self.of_step.get(step, value)))
            if not self.recovered:
                self.recovered = True
                self.recoveries += 1
                if self.recoveries <= _MOST_RECOVERIES:
                    note("nan.losses", "bad=%d finite_again=%s" % (self.bad, step))
            return
        if self.scaled and value == value and not self.probe.engine.adopted:
            return                        # of a GradScaler: the scaled loss, which is what is watched for
        self.bad += 1
        self.recovered = False
        self._keep(self.of_step, step, value)
        if self.bad == 1:
            note("nan.loss", "step=%s micro=%s value=%s good=%d last=%s lr=%s scale=%s %s" % (
                step, micro, text_of(value), self.good, text_of(self.losses[-1]) if self.losses else "-",
                self._rate(), text_of(self.scale) if self.scale is not None else "-", kinds))
        if self.bad & (self.bad - 1) == 0:
            note("nan.losses", "bad=%d finite_again=-" % self.bad)
        self.probe.watch.request()

    def evaluated(self, model, output):
        """A whole model's forward without training."""
        if not self.probe.numerics or self.bad_evaluation:
            return
        value, what = _result_of(output)
        if value is None:
            return
        torch = self.probe.torch
        kind = _short(value.dtype)
        if value.numel() != 1:
            with torch.no_grad():
                value = value.detach().sum(dtype=torch.float32)
        kinds = "%s %s=%s" % (self._kinds(model), what, kind)
        step, trained = self.probe.steps.announced, self.kinds
        self.probe.later.look(value.detach(), lambda came: self._evaluation_came(step, came, what, kinds, trained))

    def _evaluation_came(self, step, value, what, kinds, trained):
        bad = not is_finite(value) if what == "loss" else value != value     # outputs may be masked with -inf
        if bad and not self.bad_evaluation:
            self.bad_evaluation = True
            self.probe.native.note("nan.evaluation", "step=%s value=%s good=%d bad=%d %s trained_%s" % (
                step, text_of(value), self.good, self.bad, kinds, trained.replace(" ", " trained_")))

    # ---- gradient norms ----------------------------------------------------------------------------------------

    def norm(self, value, skipped=False, clip=0.0):
        """The gradients' norm of the step that was just made; `skipped`: the framework does not make it."""
        if not self.probe.numerics or value is None:
            return
        step, rate, batch = self.probe.steps.announced, self._rate(), self.probe.loader.taken()
        self.probe.later.look(value, lambda came: self._norm_came(step, came, skipped, clip, rate, batch))

    def _norm_came(self, step, value, skipped, clip, rate, batch):
        loss = self.of_step.get(step)
        for jump in self.jumps:
            self._follow(jump, value, loss)
        self.jumps = [jump for jump in self.jumps if jump[1]]
        self._look_whether_over(step, value)
        if not is_finite(value):
            if not self.scaled and not self.bad_norm:
                self.bad_norm = True
                self.probe.native.note("nan.norm", "step=%s value=%s skipped=%d lr=%s loss=%s %s" % (
                    step, text_of(value), skipped, rate, text_of(loss) if loss is not None else "-", self.kinds))
            return
        if len(self.norms) >= _LEAST:
            usual, largest = median(self.norms), max(self.norms)
            if value > _TIMES_MEDIAN * usual and value > _TIMES_LARGEST * largest and self.jumps_told < _MOST_JUMPS:
                self.jumps_told += 1
                key = "jump.%d" % self.jumps_told
                self.probe.native.note(key, "step=%s norm=%s usual=%s largest=%s of=%d loss=%s usual_loss=%s lr=%s clip=%s "
                                            "batch=%s" % (step, text_of(value), text_of(usual), text_of(largest),
                                                          len(self.norms), text_of(loss) if loss is not None else "-",
                                                          self._usual_loss(step), rate, text_of(clip), batch))
                self.jumps.append([key, _AFTER, [], [], usual])
        self.norms.append(value)

    def _follow(self, jump, value, loss):
        jump[1] -= 1
        jump[2].append(value)
        if loss is not None:
            jump[3].append(loss)
        if jump[1] == 0:
            high = sum(not norm <= _TIMES_LARGEST * jump[4] for norm in jump[2])
            self.probe.native.note(jump[0] + ".after", "steps=%d high=%d loss=%s norm=%s" % (
                _AFTER, high, text_of(median(jump[3])) if jump[3] else "-", text_of(median(jump[2]))))
            if high:
                self.high.append([jump[0], jump[4], 0])

    def _look_whether_over(self, step, norm):
        for jump in self.high:
            jump[2] = jump[2] + 1 if norm <= _TIMES_LARGEST * jump[1] else 0
            if jump[2] == _AFTER:
                self.probe.native.note(jump[0] + ".over", "step=%s norm=%s" % (step, text_of(norm)))
        self.high = [jump for jump in self.high if jump[2] < _AFTER]

    def _usual_loss(self, step):
        others = [loss for when, loss in self.of_step.items() if when != step and is_finite(loss)]
        return text_of(median(others)) if others else "-"

    def _rate(self):
        optimizer = self.probe.steps.stepping()
        groups = getattr(optimizer, "param_groups", None)
        rate = groups[0].get("lr") if groups else None
        return text_of(rate) if isinstance(rate, (int, float)) else "-"

    # ---- loss scales -------------------------------------------------------------------------------------------

    def scale_begins(self, scale):
        """The loss scale before the first step that may change it."""
        self.scaled = True
        if self.probe.numerics and self.scale is None:
            self.probe.later.look(scale, self._scale_begins)

    def _scale_begins(self, scale):
        if self.scale is None:
            self.scale = scale

    def scale_is(self, scale, skipped, floor):
        """The loss scale behind a step, which adapts; `skipped`: its gradients overflowed."""
        if not self.probe.numerics:
            return
        self.scaled = True
        step = self.probe.steps.announced
        self.probe.later.look(scale, lambda came: self._scale_came(step, came, skipped, floor))

    def _scale_came(self, step, scale, skipped, floor):
        before, self.scale = self.scale, scale
        self.steps_made += 1
        skipped = skipped or (before is not None and scale < before)
        self.skipped += bool(skipped)
        if self.start is None:
            self.start, self.floor = scale if before is None else before, floor
        if not skipped and self.first_made is None:
            self.first_made = step
        if before is None or scale == before:
            return
        if self.first_made is not None or scale > before:
            self.falls = 0 if scale > before else self.falls + 1
        self.changes = (self.changes + ["%s:%s" % (step, text_of(scale))])[-_SCALES_SHOWN:]
        if self.scale_notes < _MOST_SCALES:
            self.scale_notes += 1
            self.probe.native.note("scale", "start=%s now=%s floor=%s falls=%d skipped=%d of=%d first_made=%s lr=%s changes=%s" % (
                text_of(self.start), text_of(scale), text_of(self.floor), self.falls, self.skipped, self.steps_made,
                self.first_made, self._rate(), ",".join(self.changes)))

    @staticmethod
    def _keep(of_step, step, value):
        of_step[step] = value
        while len(of_step) > _WINDOW:
            del of_step[next(iter(of_step))]


def _simulated():
    """Elements of the largest tensor that a simulated GPU computes: an optimizer's flat buffer holds the whole model.  None
    on a real one."""
    environment = getattr(sys.modules.get("os"), "environ", {})
    return int(environment.get("SIMGPU_SMALL") or 65536) if environment.get("SIMGPU_NUM") == "small" else None


def _short(kind):
    return str(kind).rsplit(".", 1)[-1]


_LARGEST_OUTPUT = 1 << 20     # elements of an output without a loss that are looked at


def _result_of(output):
    """(tensor, "loss" or "output") of what a model returned."""
    loss = output.get("loss") if isinstance(output, dict) else None
    if loss is None and isinstance(output, dict):
        output = next(iter(output.values()), None)
    if loss is None and isinstance(output, (tuple, list)) and output:
        output = output[0]
    found = output if loss is None else loss
    if not hasattr(found, "numel") or not found.is_floating_point() or not 0 < found.numel() <= _LARGEST_OUTPUT:
        return None, ""
    return found, "loss" if found.numel() == 1 else "output"
