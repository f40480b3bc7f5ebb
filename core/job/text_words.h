// The words that the readable form (dump.h) uses for enumerators; the index is the enumerator.
#pragma once

#include <string_view>

#include "core/flight/format.h"

namespace dshang::job::words {

inline constexpr std::string_view kDType[] = {"no_dtype", "i8",     "u8",     "i32",          "u32",
                                              "i64",      "u64",    "f16",    "bf16",         "f32",
                                              "f64",      "f8e4m3", "f8e5m2", "unknown_dtype"};
inline constexpr std::string_view kReduceOp[] = {"no_reduce", "sum", "prod",      "max",
                                                 "min",       "avg", "premulsum", "unknown_reduce"};
inline constexpr std::string_view kVisit[] = {"none",      "step",         "micro_step",  "phase_push",
                                              "phase_pop", "module_enter", "module_exit", "gather",
                                              "loop_end",  "trace_mode",   "teardown"};
inline constexpr std::string_view kTraining[] = {"no", "yes", "unknown"};
inline constexpr std::string_view kYesNo[] = {"no", "yes"};
inline constexpr std::string_view kCommState[] = {"none",      "creating", "ready", "finalized",
                                                  "destroyed", "aborted",  "failed"};
inline constexpr std::string_view kCommOrigin[] = {"unknown", "init", "init_all", "split", "shrink", "grow"};
inline constexpr std::string_view kMemory[] = {"device", "host", "managed", "pool", "virtual", "registered"};
inline constexpr std::string_view kStackSource[] = {"none", "gil", "raw", "native", "refused"};
inline constexpr std::string_view kEnding[] = {"none", "exit", "signal", "abort"};
inline constexpr std::string_view kPython[] = {"none", "sites", "off"};

// The usual states of a call; any other set of flags is written out.
struct CallState {
  std::string_view word;
  std::uint32_t flags;
};
inline constexpr std::uint32_t kBothMarks =
    flight::kCallReturned | flight::kCallMarked | flight::kCallStartMarked;
inline constexpr CallState kCallStates[] = {
    {"done", kBothMarks | flight::kCallStarted | flight::kCallDone},
    {"entered", 0},
    {"returned", flight::kCallReturned},
    {"queued", kBothMarks},
    {"started", kBothMarks | flight::kCallStarted},
    {"failed", flight::kCallReturned | flight::kCallFailed},
    {"captured", flight::kCallReturned | flight::kCallCaptured},
};
inline constexpr std::string_view kCallFlag[] = {"returned", "failed", "in_group",     "group_pending",
                                                 "captured", "marked", "start_marked", "started",
                                                 "done",     "unknown"};
inline constexpr std::string_view kOpTrait[] = {"collective", "send",      "recv",      "reduces",
                                                "rooted",     "one_sided", "life_cycle"};
inline constexpr std::string_view kThreadFlag[] = {"calls", "visits", "own"};

static_assert(std::size(kDType) == static_cast<unsigned>(flight::DType::kUnknown) + 1);
static_assert(std::size(kReduceOp) == static_cast<unsigned>(flight::ReduceOp::kUnknown) + 1);
static_assert(std::size(kVisit) == static_cast<unsigned>(flight::VisitKind::kTeardown) + 1);
static_assert(std::size(kCommState) == static_cast<unsigned>(flight::CommState::kFailed) + 1);
static_assert(std::size(kCommOrigin) == static_cast<unsigned>(flight::CommOrigin::kGrow) + 1);
static_assert(std::size(kMemory) == flight::kMemoryKinds);
static_assert(std::size(kStackSource) == static_cast<unsigned>(flight::StackSource::kRefused) + 1);
static_assert(std::size(kEnding) == static_cast<unsigned>(flight::EndingKind::kAbort) + 1);

}  // namespace dshang::job::words
