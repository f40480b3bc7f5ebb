// The wrappers of NCCL: one for each row of nccl.def, made by the row's kind.
#include <string.h>

#include "interpose/calls/group.h"
#include "interpose/calls/numbers.h"
#include "interpose/calls/record.h"
#include "interpose/comms/plans.h"
#include "interpose/resolve/asked.h"
#include "interpose/wrappers/asked.h"
#include "interpose/wrappers/wrapper.h"

namespace dshang::interpose {
namespace {

using namespace abi;
using calls::Arguments;
using calls::Entry;
using calls::Group;
using calls::this_thread;
using flight::CommState;
using flight::Writer;
using resolve::Found;

constexpr Result kNoFunction = Result::kInvalidUsage;

// What the program was told instead of NCCL's own answer: only then it may ask for the words.
std::atomic<const runtime::Failure*> answered_failure{nullptr};

template <typename... P>
Arguments arguments_of(const P&... p) {
  Arguments arguments;
  (calls::take(arguments, p), ...);
  return arguments;
}

template <Row R>
Found real_of(const Entry& here) {
  if (here.asked) {
    resolve::note_nccl();
    return {here.asked, resolve::asked_library()};
  }
  return resolve::by_caller(R, here.caller);
}

// A communicator belongs to one library; calls without one are served by the caller's.
template <Row R>
Found real_of(const comms::Live* live, const Entry& here) {
  if (live && !here.asked) return {resolve::in_library(R, live->library), live->library};
  return real_of<R>(here);
}

// Collectives, point-to-point, one-sided, and what changes or ends a communicator.
template <Row R, typename... P>
Result recorded(const Entry& here, P... p) {
  Stay stay(this_thread.nccl, here);
  Arguments arguments = arguments_of(p...);
  comms::Live* live = comms::find(arguments.comm);
  Found real = real_of<R>(live, here);
  if (!real.function) return missing<R>(kNoFunction);
  if (!stay.writer) return stay.call<Result>(real.function, p...);

  const Writer& writer = *stay.writer;
  std::uint64_t enter_ns = calls::now_ns();
  std::uint32_t comm = comms::known(writer, live, arguments.comm, real.library).index;
  calls::Call call = calls::open_call(writer, R, arguments, comm, real.library, enter_ns);
  constexpr Kind kind = info(R).kind;
  if constexpr (kind == Kind::kFinalize) comms::note_end(writer, arguments.comm, CommState::kFinalized);
  if constexpr (kind == Kind::kDestroy) comms::note_end(writer, arguments.comm, CommState::kDestroyed);
  if constexpr (kind == Kind::kAbort) comms::note_end(writer, arguments.comm, CommState::kAborted);
  Result result = stay.call<Result>(real.function, p...);
  calls::close_call(writer, call, result);
  return result;
}

// A communicator out of nothing.
template <Row R, typename... P>
Result create(const Entry& here, P... p) {
  wake_for(runtime::WakeReason::kCommunicator);
  Stay stay(this_thread.nccl, here);
  Found real = real_of<R>(here);
  if (!real.function) return missing<R>(kNoFunction);
  if (!stay.writer) return stay.call<Result>(real.function, p...);

  const Writer& writer = *stay.writer;
  constexpr comms::RowTag<R> kRow;
  comms::Creation creations[R == Row::ncclCommInitAll ? comms::kMostAtOnce : 1];
  unsigned count = comms::planned(kRow, p...);
  calls::inside(writer, R, calls::now_ns());
  for (unsigned i = 0; i < count; ++i) {
    creations[i] = comms::begin_creation(writer, comms::plan(kRow, writer, i, p...), real.library);
  }
  Result result = stay.call<Result>(real.function, p...);
  for (unsigned i = 0; i < count; ++i) {
    comms::finish_creation(writer, creations[i], result, this_thread.groups[real.library]);
  }
  calls::outside(writer, calls::now_ns());
  runtime::hand_over_with_first_communicator();
  return result;
}

// A communicator out of another one: a call on the parent, and a creation.  Ranks that ncclCommGrow adds have no
// parent.
template <Row R, typename... P>
Result derive(const Entry& here, P... p) {
  wake_for(runtime::WakeReason::kCommunicator);
  Stay stay(this_thread.nccl, here);
  Arguments arguments = arguments_of(p...);
  comms::Live* live = comms::find(arguments.comm);
  Found real = real_of<R>(live, here);
  if (!real.function) return missing<R>(kNoFunction);
  if (!stay.writer) return stay.call<Result>(real.function, p...);

  const Writer& writer = *stay.writer;
  std::uint64_t enter_ns = calls::now_ns();
  comms::Known parent = comms::known(writer, live, arguments.comm, real.library);
  calls::Call call{};
  if (arguments.comm) {
    call = calls::open_call(writer, R, arguments, parent.index, real.library, enter_ns);
  } else {
    calls::inside(writer, R, enter_ns);
  }
  comms::Plan plan = comms::plan(comms::RowTag<R>{}, parent.id, call.number, p...);
  comms::Creation creation = comms::begin_creation(writer, plan, real.library);
  Result result = stay.call<Result>(real.function, p...);
  if (arguments.comm) {
    calls::close_call(writer, call, result);
  } else {
    calls::outside(writer, calls::now_ns());
  }
  comms::finish_creation(writer, creation, result, this_thread.groups[real.library]);
  runtime::hand_over_with_first_communicator();
  return result;
}

template <Row R, typename... P>
Result group_start(const Entry& here, P... p) {
  Stay stay(this_thread.nccl, here);
  Found real = real_of<R>(here);
  if (!real.function) return missing<R>(kNoFunction);
  Result result = stay.call<Result>(real.function, p...);
  if (!stay.nested() && calls::accepted(result)) calls::group_started(stay.writer, this_thread.groups[real.library]);
  return result;
}

// ncclGroupEnd and ncclGroupSimulateEnd, which issues nothing.
template <Row R, typename... P>
Result group_end(const Entry& here, P... p) {
  constexpr bool kIssues = info(R).kind == Kind::kGroupEnd;
  Stay stay(this_thread.nccl, here);
  Found real = real_of<R>(here);
  if (!real.function) return missing<R>(kNoFunction);
  if (stay.nested()) return stay.call<Result>(real.function, p...);
  Group& group = this_thread.groups[real.library];
  if (!stay.writer || group.depth != 1) {
    Result result = stay.call<Result>(real.function, p...);
    calls::group_ended(stay.writer, group);
    return result;
  }
  const Writer& writer = *stay.writer;
  calls::GroupMarks marks;
  calls::inside(writer, R, calls::now_ns());
  if (kIssues) calls::begin_group_end(writer, group, marks);
  Result result = stay.call<Result>(real.function, p...);
  calls::outside(writer, calls::now_ns());
  if (kIssues) {
    calls::finish_group_end(writer, group, marks, result);
  } else {
    calls::drop_group(writer, group);
  }
  if (group.creations) comms::settle_group(writer, group, kIssues ? result : kNoFunction);
  calls::group_ended(&writer, group);
  return result;
}

// Not recorded.
template <Row R, typename... P>
Result passive(const Entry& here, P... p) {
  Stay stay(this_thread.nccl, here);
  Found real = real_of<R>(comms::find(arguments_of(p...).comm), here);
  if (!real.function) return missing<R>(kNoFunction);
  return stay.call<Result>(real.function, p...);
}

template <Row R>
Result async_error(const Entry& here, Comm comm, Result* error) {
  Stay stay(this_thread.nccl, here);
  Found real = real_of<R>(comms::find(comm), here);
  if (!real.function) return missing<R>(kNoFunction);
  Result result = stay.call<Result>(real.function, comm, error);
  if (!stay.writer || result != Result::kSuccess || !error) return result;
  comms::note_async_error(*stay.writer, comm, *error);
  bool fine = *error == Result::kSuccess || *error == Result::kInProgress;
  const runtime::Failure* failure = fine ? comms::failure_of(comm) : nullptr;
  if (failure) {
    *error = failure->rank_is_gone ? Result::kRemoteError : Result::kInvalidUsage;
    answered_failure.store(failure, std::memory_order_release);
  }
  return result;
}

// The text of NCCL's own last error, unless what the program last heard of was not NCCL's.
template <Row R>
const char* last_error(const Entry& here, Comm comm) {
  Stay stay(this_thread.nccl, here);
  const runtime::Failure* failure = answered_failure.load(std::memory_order_acquire);
  if (stay.writer && failure && failure == runtime::failure()) return failure->why;
  Found real = real_of<R>(comms::find(comm), here);
  if (!real.function) return missing<R>("");
  return stay.call<const char*>(real.function, comm);
}

template <Row R, typename... P>
auto wrapped(const Entry& here, P... p) {
  constexpr Kind kind = info(R).kind;
  if constexpr (kind == Kind::kCreate) {
    return create<R>(here, p...);
  } else if constexpr (kind == Kind::kDerive) {
    return derive<R>(here, p...);
  } else if constexpr (kind == Kind::kGroupStart) {
    return group_start<R>(here, p...);
  } else if constexpr (kind == Kind::kGroupEnd || kind == Kind::kGroupSimulateEnd) {
    return group_end<R>(here, p...);
  } else if constexpr (kind == Kind::kAsyncError) {
    return async_error<R>(here, p...);
  } else if constexpr (kind == Kind::kLastError) {
    return last_error<R>(here, p...);
  } else if constexpr (kind == Kind::kPassive) {
    return passive<R>(here, p...);
  } else {
    return recorded<R>(here, p...);
  }
}

// The wrappers of callers that have the real function from dlsym().
#define DSHANG_ROW(name, result, parameters, kind, op)                                   \
  result asked_##name(DSHANG_PARAMETERS parameters) {                                    \
    Entry here = DSHANG_HERE;                                                            \
    here.asked = resolve::asked_function(Row::name);                                     \
    return wrapped<Row::name>(here DSHANG_ARGUMENTS parameters);                         \
  }
#include "interpose/symbols/nccl.def"
#undef DSHANG_ROW

}  // namespace

AskedWrapper asked_wrapper(const char* name) {
#define DSHANG_ROW(row, ...) \
  if (strcmp(name, #row) == 0) return {Row::row, reinterpret_cast<void*>(&asked_##row)};
#include "interpose/symbols/nccl.def"
#undef DSHANG_ROW
  return {};
}

#define DSHANG_ROW(name, result, parameters, kind, op) \
  DSHANG_WRAPPER(name, result, parameters) { return wrapped<Row::name>(DSHANG_HERE DSHANG_ARGUMENTS parameters); }
#include "interpose/symbols/nccl.def"
#undef DSHANG_ROW

}  // namespace dshang::interpose
