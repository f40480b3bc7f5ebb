"""Reads what these tests need out of a flight memory (core/flight/format.h)."""
import struct

SECTIONS = ("ops", "calls", "visits", "comms", "strings", "arena", "sites", "memory_steps", "alloc_failures",
            "threads", "facts", "exceptions", "stacks")
KINDS = ("device", "host", "managed", "pool", "virtual", "registered")
ENDINGS = {0: None, 1: "exit", 2: "signal", 3: "abort"}
RETURNED, MARKED, STARTED, DONE, UNKNOWN = 1 << 0, 1 << 5, 1 << 7, 1 << 8, 1 << 9


class Image:
    def __init__(self, data):
        self.data = data
        assert data[:8] == b"DSHANGFM", data[:8]
        self.version, self.header_bytes, self.total = struct.unpack_from("<IIQ", data, 8)
        self.pid, self.rank, self.local_rank, self.world_size, self.restart_count, self.provisional = struct.unpack_from("<5iI", data, 24)
        self.start_ticks, self.job, self.net, self.pids, self.start_ns, self.start_real_ns = struct.unpack_from("<6Q", data, 48)
        self.host = data[96:160].split(b"\0")[0].decode()
        self.sections = {}
        for i, name in enumerate(SECTIONS):
            self.sections[name] = struct.unpack_from("<QQII", data, 160 + 24 * i)
        heads = struct.unpack_from("<7Q", data, 472)
        self.call_head, self.visit_head, self.memory_step_head, self.alloc_failure_head, self.fact_head = heads[:5]
        self.stack_head = heads[6]
        self.comm_count, = struct.unpack_from("<I", data, 528)
        self.poll_ns, self.poll_stuck_ns = struct.unpack_from("<2Q", data, 584)
        memory = struct.unpack_from("<17Q", data, 616)
        self.live, self.peak = dict(zip(KINDS, memory[:6])), dict(zip(KINDS, memory[6:12]))
        self.allocations, self.frees, self.failures, self.retries, self.untracked = memory[12:]
        kind, self.ending_code = struct.unpack_from("<Ii", data, 752)
        self.ending = ENDINGS[kind]

    def text(self, string):
        if not string:
            return None
        offset = self.sections["strings"][0] + 16 * (string - 1)
        _, length, at = struct.unpack_from("<QII", self.data, offset)
        start = self.sections["arena"][0] + at
        return self.data[start:start + length - 1].decode()

    def facts(self):
        found = {}
        for n in range(self.fact_head):
            key, value = struct.unpack_from("<2I", self.data, self.sections["facts"][0] + 24 * n + 16)
            found[self.text(key)] = self.text(value)
        return found

    def call_flags(self):
        return [struct.unpack_from("<I", self.data, self.sections["calls"][0] + 128 * n + 120)[0] for n in range(self.call_head)]

    def alloc_failures(self):
        found = []
        for n in range(self.alloc_failure_head):
            values = struct.unpack_from("<6QqIIIIiBB", self.data, self.sections["alloc_failures"][0] + 120 * n)
            found.append({"size": values[2], "free": values[3], "total": values[4], "step": values[6],
                          "result": values[11], "kind": KINDS[values[12]], "retried": values[13]})
        return found

    def memory_steps(self):
        found = []
        for n in range(self.memory_step_head):
            values = struct.unpack_from("<QQq12Q4Q2Q", self.data, self.sections["memory_steps"][0] + 320 * n)
            found.append({"step": values[2], "live": dict(zip(KINDS, values[3:9])), "peak": dict(zip(KINDS, values[9:15])),
                          "allocations": values[15], "frees": values[16], "failures": values[17], "retries": values[18]})
            at = self.sections["memory_steps"][0] + 320 * n + 168
            found[-1]["call_ns"], found[-1]["retry_ns"] = struct.unpack_from("<QQ", self.data, at + 136)
            found[-1]["device_free"], found[-1]["device_total"] = struct.unpack_from("<QQ", self.data, at)
        return found
