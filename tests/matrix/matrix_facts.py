"""Which facts the probe recorded, read from what `dshang report --dump` prints."""
import re
from collections import Counter

_WORD = re.compile(r'(?:[^\s"]|"(?:[^"\\]|\\.)*")+')     # "one word", key="one word"


class Recorded:
    """What one rank recorded."""

    def __init__(self):
        self.facts = {}               # key: value
        self.visits = Counter()       # phase: module visits
        self.phases = Counter()
        self.modes = []
        self.steps = self.micro_steps = self.gathers = self.named_gathers = self.memory = 0
        self.open = []                # phase stack

    def take(self, words):
        kind, rest = words[0], words[1:]
        if kind == "fact":
            self.facts[rest[0]] = rest[1]
        elif kind == "memory":
            self.memory += any(word.startswith("reserved_peak=") for word in rest)
        elif kind == "visit":
            self._visit(rest[0], rest[1:])

    def _visit(self, kind, rest):
        if kind == "phase_push":
            self.phases[rest[0]] += 1
            self.open.append(rest[0])
        elif kind == "phase_pop" and self.open:
            self.open.pop()
        elif kind == "module_enter":
            said = [word[len("phase="):] for word in rest if word.startswith("phase=")]
            self.visits[said[0] if said else self.open[-1] if self.open else "-"] += 1
        elif kind == "step":
            self.steps += 1
        elif kind == "micro_step":
            self.micro_steps += 1
        elif kind == "trace_mode":
            self.modes.append(rest[0].split()[0])
        elif kind == "gather":
            self.gathers += 1
            self.named_gathers += "(" in rest[0]


def read(dump):
    """{rank: Recorded}"""
    ranks, current = {}, None
    for line in dump.splitlines():
        if line.startswith("rank "):
            current = ranks.setdefault(int(line.split()[1]), Recorded())
        elif current is not None and line.startswith(("fact ", "memory ", "visit ")):
            current.take([word.replace('"', "") for word in _WORD.findall(line)])
    return ranks


def present(recorded):
    """{name of a fact: what is known of it, "" when it is missing} for one rank."""
    facts, visits = recorded.facts, recorded.visits

    def count(number):
        return str(number) if number else ""

    def key(*names):
        return next((facts[name] for name in names if name in facts), "")
    gathers = "%d, %d named" % (recorded.gathers, recorded.named_gathers) if recorded.named_gathers else ""
    batches = sum(name.startswith("batch.") and value != "unread" for name, value in facts.items())
    return {
        "forward visits": count(visits["forward"]), "backward visits": count(visits["backward"]),
        "recompute visits": count(visits["recompute"]), "steps": count(recorded.steps),
        "micro-steps": count(recorded.micro_steps),
        "phases": " ".join(sorted(recorded.phases)) if {"forward", "backward", "optimizer"} <= set(recorded.phases) else "",
        "gathers": gathers, "trace mode": " ".join(recorded.modes), "loader": key("loader.length"), "batches": count(batches),
        "allocator": count(recorded.memory), "config": key("deepspeed.config.hash"), "data-parallel ranks": key("data_parallel.ranks"),
        "versions": key("version.torch") if "version.nccl" in facts else "", "backward": key("deepspeed.direct_backward"),
        "structure": key("parameters.1"),
    }


def skipped(recorded):
    """What the probe named as not observed."""
    return {name[len("probe.skipped."):]: value for name, value in recorded.facts.items() if name.startswith("probe.skipped.")}


def judged(ranks, wanted):
    """(missing facts, {fact: value}): one that a single rank lacks is missing; the values are those of the lowest rank."""
    if not ranks:
        return list(wanted), {}
    by_rank = {rank: present(recorded) for rank, recorded in ranks.items()}
    missing = [name for name in wanted if not all(by_rank[rank][name] for rank in by_rank)]
    for rank in sorted(ranks):
        missing += ["%s (%s)" % item for item in skipped(ranks[rank]).items() if "%s (%s)" % item not in missing]
    return missing, by_rank[min(by_rank)]
