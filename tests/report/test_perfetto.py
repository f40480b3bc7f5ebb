"""`dshang report --perfetto`, read back with the schema of Perfetto's own package.

TEST_BUILD: the build directory (default build/).
"""
import collections
import json
import os
import pathlib
import subprocess

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

import made_jobs

ROOT = pathlib.Path(__file__).parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build")).absolute()
EQUAL_SIZES = ROOT / "tests" / "golden" / "module-skipped" / "equal_sizes.txt"
EVENT = schema.TrackEvent


def unknown_fields(message):
    """Names of messages that hold fields the schema does not have."""
    from google.protobuf.unknown_fields import UnknownFieldSet
    found = [message.DESCRIPTOR.name] if len(UnknownFieldSet(message)) else []
    for field, value in message.ListFields():
        if field.message_type:
            for inner in value if field.is_repeated else [value]:
                found += unknown_fields(inner)
    return found


Slice = collections.namedtuple("Slice", "rank track name begin end arguments depth")


class Trace:
    """Tracks and slices, as a reader of the format puts them together."""

    def __init__(self, bytes_of_it):
        self.raw = schema.Trace.FromString(bytes_of_it)
        names, keys, texts = {}, {}, {}
        self.tracks, self.slices, self.instants, self.counts, self.left_open = {}, [], [], collections.defaultdict(list), 0
        open_slices = collections.defaultdict(list)
        for packet in self.raw.packet:
            names.update((one.iid, one.name) for one in packet.interned_data.event_names)
            keys.update((one.iid, one.name) for one in packet.interned_data.debug_annotation_names)
            texts.update((one.iid, one.str.decode()) for one in packet.interned_data.debug_annotation_string_values)
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if not packet.HasField("track_event"):
                continue
            event = packet.track_event
            assert event.track_uuid in self.tracks
            arguments = {keys[a.name_iid]: texts[a.string_value_iid] if a.HasField("string_value_iid") else a.int_value
                         for a in event.debug_annotations}
            stack = open_slices[event.track_uuid]
            if event.type == EVENT.TYPE_SLICE_BEGIN:
                assert not stack or packet.timestamp >= stack[-1][0]
                stack.append((packet.timestamp, names[event.name_iid], arguments))
            elif event.type == EVENT.TYPE_SLICE_END:
                begin, name, about = stack.pop()
                assert packet.timestamp >= begin
                self.slices.append(Slice(self.rank_of(event.track_uuid), self.tracks[event.track_uuid].name, name, begin,
                                         packet.timestamp, about, len(stack)))
            elif event.type == EVENT.TYPE_INSTANT:
                self.instants.append((self.tracks[event.track_uuid].name, names[event.name_iid], arguments))
            else:
                assert event.type == EVENT.TYPE_COUNTER and self.tracks[event.track_uuid].counter.unit == schema.CounterDescriptor.UNIT_SIZE_BYTES
                self.counts[self.rank_of(event.track_uuid), self.tracks[event.track_uuid].name].append((packet.timestamp, event.counter_value))
        self.left_open = sum(map(len, open_slices.values()))

    def rank_of(self, uuid):
        parent = self.tracks[self.tracks[uuid].parent_uuid]
        return parent.process.pid - 1

    def of(self, rank, track):
        return [one for one in self.slices if one.rank == rank and one.track == track]


def trace_of(snapshot):
    done = subprocess.run([BUILD / "report_of", "perfetto", snapshot], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return Trace(done.stdout)


@pytest.fixture(scope="module")
def hang():
    return trace_of(EQUAL_SIZES)


def test_the_schema_knows_every_field(hang):
    assert unknown_fields(hang.raw) == []
    assert {packet.trusted_packet_sequence_id for packet in hang.raw.packet} == {1}
    assert [packet.sequence_flags for packet in hang.raw.packet[:2]] == [1, 2]


def test_each_rank_has_its_tracks(hang):
    processes = {track.process.pid - 1: track.process.process_name for track in hang.tracks.values() if track.HasField("process")}
    assert sorted(processes) == [0, 1, 2] and all(name.startswith(f"rank {rank} (") for rank, name in processes.items())
    for rank in processes:
        assert {one.track for one in hang.slices if one.rank == rank} == {"calls of world", "steps", "phases", "modules"}
    assert hang.left_open == 0


def test_collectives_have_their_arguments(hang):
    report = json.loads(subprocess.run([BUILD / "report_of", "json", EQUAL_SIZES], capture_output=True, check=True).stdout)
    finding = report["findings"][0]
    for side in finding["sides"]:
        for rank in side["ranks"]:
            call, = [one for one in hang.of(rank, "calls of world") if one.arguments["call"] == finding["call"]]
            assert call.name == side["op"]
            assert [call.arguments.get(key) for key in ("count", "dtype", "step", "phase", "module")] == [
                side[key] for key in ("count", "dtype", "step", "phase", "module")]
            assert call.arguments["state"] == "waits"
    assert hang.of(0, "calls of world")[0].arguments["site"] == "model.py:10 forward"
    numbers = [one.arguments["call"] for one in hang.of(0, "calls of world")]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


def test_steps_follow_each_other_and_modules_lie_in_them(hang):
    steps = hang.of(0, "steps")
    assert [one.name for one in steps] == ["step 1", "step 2", "step 3"]
    assert all(one.end == following.begin for one, following in zip(steps, steps[1:]))
    modules = [one for one in hang.of(0, "modules") if one.name == "layers.1"]
    assert modules and all(any(step.begin <= one.begin <= step.end for step in steps) for one in modules)


def test_what_was_found_is_there(hang):
    found, = [one for one in hang.instants if one[0] == "what was found"]
    assert found[2]["class"] == "module-skipped" and found[2]["suspects"] == "2" and found[2]["fix 1"]


def test_memory_is_counted(tmp_path):
    (tmp_path / "memory.txt").write_text(made_jobs.memory())
    trace = trace_of(tmp_path / "memory.txt")
    peaks = trace.counts[2, "allocated by torch, peak of the step"]
    assert len(peaks) == 59 and max(value for _, value in peaks) > 70 << 30
    assert [times for times, _ in peaks] == sorted(times for times, _ in peaks)
    assert any(name == "allocation failed" and about["bytes"] == 6442450944 for _, name, about in trace.instants)


def test_calls_that_overlap_lie_on_several_tracks_of_one_name(tmp_path):
    """Slices of one track must nest: the first of these two ends while the second lasts."""
    snapshot = tmp_path / "overlap.txt"
    snapshot.write_text("rank 0 pid 1 world 1\ncomm world\ncall all_gather 1 f32 at=0.1 done=0.5\ncall all_gather 2 f32 at=0.3 done=0.9\n"
                        "call all_gather 3 f32 at=0.6 done=0.7\n")
    trace = trace_of(snapshot)
    calls = sorted(trace.of(0, "calls of world"), key=lambda one: one.begin)
    assert [(one.begin, one.end, one.depth) for one in calls] == [(10**8, 5 * 10**8, 0), (3 * 10**8, 9 * 10**8, 0), (6 * 10**8, 7 * 10**8, 0)]
    assert len([track for track in trace.tracks.values() if track.name == "calls of world"]) == 2
