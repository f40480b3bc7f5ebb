"""What `dshang report --dump` says of a job, process by process."""
import shlex
import subprocess


class Call:
    def __init__(self, words, sites):
        self.op, self.pairs = words[0], dict(word.split("=", 1) for word in words if "=" in word)
        self.words = [word for word in words if "=" not in word]
        self.comm = self.pairs.get("comm", "c0")
        self.frames = sites.get(self.pairs.get("site"), "").split(" | ")
        self.flags = set(self.pairs.get("flags", "").split("+"))

    @property
    def captured(self):
        return "captured" in self.flags or "captured" in self.words


class Process:
    def __init__(self, words):
        self.rank = int(words[1])
        self.pid = int(words[words.index("pid") + 1])
        self.calls, self.comms, self.facts, self.ending, self.live, self.process = [], [], {}, None, {}, {}
        self._sites = {}

    def line(self, kind, words):
        pairs = dict(word.split("=", 1) for word in words if "=" in word)
        if kind == "site":
            self._sites[words[0]] = words[1]
        elif kind == "fact":
            self.facts[words[0]] = words[1]
        elif kind == "comm":
            self.comms.append(dict(pairs, name=words[0], words=words[1:]))
        elif kind == "call":
            self.calls.append(Call(words, self._sites))
        elif kind == "now":
            self.live = pairs
        elif kind == "process":
            self.process = pairs
        elif kind == "ending":
            self.ending = " ".join(word for word in words if "=" not in word)

    def ops(self):
        return [call.op for call in self.calls]


def read_records(dshang, folder):
    text = subprocess.run([str(dshang), "report", "--dump", str(folder)], capture_output=True, text=True, check=True).stdout
    found = []
    for line in text.splitlines():
        words = shlex.split(line)
        if words[:1] == ["rank"] and "pid" in words:
            found.append(Process(words))
        elif words and found:
            found[-1].line(words[0], words[1:])
    return sorted(found, key=lambda process: process.rank)
