// Groups: calls between ncclGroupStart and the outermost ncclGroupEnd of a thread are issued by that End.
//
// The calls of a group are found in the ring by its ordinal, so that a group may be of any size; of one that is larger
// than the ring the oldest calls are lost.
//
// Threads: acts on the calling thread.  No lock, no allocation.
#pragma once

#include <cstdint>

#include "core/flight/writer.h"
#include "interpose/calls/thread.h"
#include "interpose/runtime/api.h"
#include "interpose/symbols/types.h"

namespace dshang::interpose::calls {

// Record n was made inside the group.
void add_to_group(Group& group, std::uint64_t n);

// The real ncclGroupStart has succeeded.  `writer` may be null (inert): the depth is kept all the same.
void group_started(const flight::Writer* writer, Group& group);

inline constexpr unsigned kGroupStreams = 16;  // marks are placed on so many streams of a group

// The marks of one outermost group end.
struct GroupMarks {
  runtime::CallSpan spans[kGroupStreams];
  runtime::Mark marks[kGroupStreams];
  unsigned count = 0;
};

// Before the real call of the outermost end: start marks.
void begin_group_end(const flight::Writer& writer, const Group& group, GroupMarks& marks);

// After it: the calls are committed, or, where it failed, rolled back.
void finish_group_end(const flight::Writer& writer, const Group& group, const GroupMarks& marks, abi::Result result);

// The calls of the group are not issued (simulation): rolled back.
void drop_group(const flight::Writer& writer, const Group& group);

// One level of the group is closed, whatever the result.
void group_ended(const flight::Writer* writer, Group& group);

}  // namespace dshang::interpose::calls
