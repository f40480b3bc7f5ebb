#include "interpose/calls/group.h"

#include "interpose/calls/numbers.h"
#include "interpose/calls/record.h"

namespace dshang::interpose::calls {
namespace {

std::atomic<std::uint32_t> groups_so_far{0};

void publish_depth(const flight::Writer* writer, const Group& group) {
  flight::ThreadEntry* entry = writer ? known_thread(*writer).entry : nullptr;
  if (entry) entry->group_depth.store(group.depth, std::memory_order_relaxed);
}

// Calls `body(n, record)` for the group's calls that NCCL has not rejected already, newest first: numbers are given
// back in the opposite order in which they were taken.
template <typename Body>
void for_each_call(const flight::Writer& writer, const Group& group, Body body) {
  if (!group.count) return;
  std::uint64_t oldest = group.last >= flight::kCallEntries ? group.last - flight::kCallEntries + 1 : 0;
  std::uint64_t first = group.first > oldest ? group.first : oldest;
  std::uint32_t thread = known_thread(writer).index;
  for (std::uint64_t n = group.last + 1; n-- > first;) {
    flight::CallRecord* record = writer.call(n);
    if (!record || record->group != group.ordinal || record->thread != thread) continue;
    if (record->flags.load(std::memory_order_relaxed) & flight::kCallFailed) continue;
    body(n, *record);
  }
}

void roll_back(const flight::Writer& writer, flight::CallRecord& record, abi::Result result) {
  if (record.number) give_back(writer, record.comm, record.op, record.root_or_peer);
  record.result = static_cast<std::uint32_t>(result);
  record.flags.fetch_or(flight::kCallFailed, std::memory_order_relaxed);
  record.flags.fetch_and(~flight::kCallGroupPending, std::memory_order_release);
}

bool can_be_marked(const flight::CallRecord& record) {
  return !(record.flags.load(std::memory_order_relaxed) & flight::kCallCaptured) &&
         !(kOpTable.ops[record.op].traits & flight::kOpLifeCycle);
}

}  // namespace

void add_to_group(Group& group, std::uint64_t n) {
  if (!group.count) group.first = n;
  group.last = n;
  ++group.count;
}

void group_started(const flight::Writer* writer, Group& group) {
  if (group.depth++ == 0) {
    group.ordinal = groups_so_far.fetch_add(1, std::memory_order_relaxed) + 1;
    group.count = group.creations = 0;
  }
  publish_depth(writer, group);
}

void begin_group_end(const flight::Writer& writer, const Group& group, GroupMarks& marks) {
  for_each_call(writer, group, [&](std::uint64_t n, flight::CallRecord& record) {
    if (!can_be_marked(record)) return;
    auto stream = reinterpret_cast<void*>(record.stream);
    unsigned at = 0;
    while (at < marks.count && marks.spans[at].stream != stream) ++at;
    if (at == kGroupStreams) {
      record.flags.fetch_or(flight::kCallProgressUnknown, std::memory_order_relaxed);
      return;
    }
    if (at == marks.count) marks.spans[marks.count++] = {n, n, group.ordinal, stream};
    marks.spans[at].first = n;
  });
  for (unsigned i = 0; i < marks.count; ++i) marks.marks[i] = runtime::mark_start(marks.spans[i]);
}

void finish_group_end(const flight::Writer& writer, const Group& group, const GroupMarks& marks, abi::Result result) {
  for_each_call(writer, group, [&](std::uint64_t, flight::CallRecord& record) {
    if (!accepted(result)) return roll_back(writer, record, result);
    if (result == abi::Result::kInProgress && can_be_marked(record)) {
      record.flags.fetch_or(flight::kCallProgressUnknown, std::memory_order_relaxed);
    }
    record.flags.fetch_and(~flight::kCallGroupPending, std::memory_order_release);
  });
  for (unsigned i = 0; i < marks.count; ++i) {
    if (result == abi::Result::kSuccess) {
      runtime::mark_end(marks.spans[i], marks.marks[i]);
    } else {
      runtime::mark_cancel(marks.spans[i], marks.marks[i]);
    }
  }
}

void drop_group(const flight::Writer& writer, const Group& group) {
  for_each_call(writer, group, [&](std::uint64_t, flight::CallRecord& record) {
    roll_back(writer, record, abi::Result::kSuccess);
  });
}

void group_ended(const flight::Writer* writer, Group& group) {
  if (group.depth) --group.depth;
  publish_depth(writer, group);
}

}  // namespace dshang::interpose::calls
