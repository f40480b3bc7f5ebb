// The layout of flight memory: what one rank process leaves for the monitor and for `dshang report`.
//
// One memory object per process, written by that process alone, read by others at any moment, also after the
// process was killed.  Readers trust nothing in it (reader.h).  All integers are in the byte order of the machine;
// times are CLOCK_MONOTONIC nanoseconds, 0 = not yet; string and site ids are indices + 1, 0 = none.
//
// A ring slot carries a stamp: 0 = never written, 2n+1 = record n is being written, 2n+2 = record n is complete.
// Record n lies in slot n % entries.  A reader copies a slot and looks at the stamp again.  Fields declared atomic
// change after the record is complete (a call returns, the GPU reaches it); each of them has one writer.
//
// The layout is documented for readers in other languages in docs/flight_format.md.  A change of any structure
// raises kVersion.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace dshang::flight {

inline constexpr std::uint64_t kMagic = 0x4d46474e41485344;  // "DSHANGFM"
inline constexpr std::uint32_t kVersion = 4;
inline constexpr std::int64_t kNoStep = INT64_MIN;
inline constexpr std::uint64_t kUnknownBytes = UINT64_MAX;

using Stamp = std::atomic<std::uint64_t>;
inline constexpr std::uint64_t writing_stamp(std::uint64_t n) { return 2 * n + 1; }
inline constexpr std::uint64_t complete_stamp(std::uint64_t n) { return 2 * n + 2; }

// ---- what the process can do: names travel in the file, so that a reader needs no table of its own ------------

enum OpTraits : std::uint32_t {
  kOpCollective = 1u << 0,  // counted on its communicator
  kOpSend = 1u << 1,        // counted per (peer, direction)
  kOpRecv = 1u << 2,
  kOpReduces = 1u << 3,     // has a reduce op
  kOpRooted = 1u << 4,      // root_or_peer is a root
  kOpOneSided = 1u << 5,    // recorded, not analysed
  kOpLifeCycle = 1u << 6,   // split, shrink, finalize, destroy: counted apart
};

struct OpInfo {
  char name[24];  // NCCL's name in snake case without prefix: all_gather, ...
  std::uint32_t traits;
  std::uint32_t reserved;
};

enum class DType : std::uint8_t { kNone, kI8, kU8, kI32, kU32, kI64, kU64, kF16, kBF16, kF32, kF64, kF8E4M3, kF8E5M2, kUnknown };
enum class ReduceOp : std::uint8_t { kNone, kSum, kProd, kMax, kMin, kAvg, kPreMulSum, kUnknown };

// ---- calls --------------------------------------------------------------------------------------------------

enum CallFlags : std::uint32_t {
  kCallReturned = 1u << 0,      // the real function has returned
  kCallFailed = 1u << 1,        // NCCL rejected it, or its group end failed: not counted
  kCallInGroup = 1u << 2,       // made between group start and end
  kCallGroupPending = 1u << 3,  // its outermost group end has not returned yet
  kCallCaptured = 1u << 4,      // its stream was capturing: no marks
  kCallMarked = 1u << 5,        // an end mark is on its stream
  kCallStartMarked = 1u << 6,   // a start mark is on its stream
  kCallStarted = 1u << 7,       // the GPU has reached it
  kCallDone = 1u << 8,          // the GPU has finished it
  kCallProgressUnknown = 1u << 9,  // marks could not be placed or read: never "no progress"
};

struct CallRecord {
  Stamp stamp;
  std::uint64_t number;      // k, counted from 1 on the communicator (send/recv: per peer and direction); 0 = not counted
  std::uint64_t count;       // elements, as passed to NCCL
  std::uint64_t stream;      // cudaStream_t
  std::uint64_t enter_ns;
  std::atomic<std::uint64_t> return_ns;
  std::atomic<std::uint64_t> started_ns;  // when the poller first saw it
  std::atomic<std::uint64_t> done_ns;
  std::uint64_t visits_before;  // visit_head of the process when the call was entered
  std::uint64_t params;      // hash of the parameter ids of a ZeRO-3 gather, 0 = unknown
  std::int64_t step;         // kNoStep = not announced
  std::uint32_t comm;        // index into the communicators
  std::uint32_t site;        // Python call site
  std::uint32_t module;      // string
  std::uint32_t phase;       // string
  std::uint32_t group;       // ordinal of the outermost group in this process, 0 = none
  std::int32_t root_or_peer; // rank within the communicator, -1 = none
  std::uint32_t thread;      // index into the threads
  std::uint8_t op;           // index into the ops
  DType dtype;
  ReduceOp reduce_op;
  std::uint8_t reserved;
  std::atomic<std::uint32_t> flags;
  std::uint32_t result;      // ncclResult_t once returned
};

// ---- visits: steps, phases, modules --------------------------------------------------------------------------

enum class VisitKind : std::uint8_t {
  kNone,
  kStep,         // a training step begins (step)
  kMicroStep,    // a micro-step begins (micro)
  kPhasePush,    // phase = the new one
  kPhasePop,     // phase = the one that ends
  kModuleEnter,  // module; forward, backward or recompute by phase
  kModuleExit,
  kGather,       // ZeRO-3 gathers parameters: params, detail = their ids as text
  kLoopEnd,      // the data loader is exhausted; detail = its length as text, if known
  kTraceMode,    // detail = RECORD, COMPLETE, INVALID
  kTeardown,     // the interpreter or the process group is going away
};

struct VisitRecord {
  Stamp stamp;
  std::uint64_t time_ns;
  std::uint64_t calls_before;  // call_head of the process when the visit was made
  std::uint64_t params;
  std::int64_t step;
  std::uint32_t module;
  std::uint32_t phase;
  std::uint32_t site;
  std::uint32_t detail;        // string
  std::uint32_t micro;
  std::uint16_t thread;
  VisitKind kind;
  std::uint8_t training;       // 0 no, 1 yes, 2 unknown
};

// ---- communicators -------------------------------------------------------------------------------------------

enum class CommState : std::uint32_t { kNone, kCreating, kReady, kFinalized, kDestroyed, kAborted, kFailed };
enum class CommOrigin : std::uint32_t { kUnknown, kInit, kInitAll, kSplit, kShrink, kGrow };

struct CommEntry {
  std::atomic<CommState> state;  // kNone: claimed, its fields are not all there yet
  CommOrigin origin;
  std::uint64_t id;          // equal on all members, unequal otherwise; 0 = a split without colour
  std::uint64_t nccl_hash;   // NCCL's own commHash where it can be computed, else 0
  std::uint64_t handle;
  std::uint64_t parent;      // id
  std::int32_t rank;         // own position, -1 until known
  std::int32_t size;
  std::int32_t color;
  std::uint32_t ordinal;     // of the split or shrink on its parent
  std::uint32_t device;
  std::uint32_t site;
  std::uint64_t begin_ns;    // creation entered
  std::uint64_t ready_ns;
  std::uint64_t end_ns;      // destroy or abort entered
  std::uint64_t free_before; // device memory around creation, bytes
  std::uint64_t free_after;
  std::atomic<std::uint64_t> calls;  // counted collectives so far
};

// ---- strings and sites ---------------------------------------------------------------------------------------

struct StringEntry {            // open addressing, never removed
  std::atomic<std::uint64_t> hash;  // 0 = empty
  std::atomic<std::uint32_t> length_plus_one;  // 0 = bytes not there yet
  std::uint32_t offset;         // into the arena
};

struct Frame {
  std::uint32_t file;           // string: last two path components are the identity across ranks
  std::uint32_t function;
  std::int32_t line;            // 0 = unknown
};

// A call of ZeRO-3 lies below some 35 frames of library code, and each torch module that contains another adds three or
// four, before the user's innermost line comes.
inline constexpr unsigned kSiteFrames = 64;

struct SiteEntry {              // open addressing by key
  std::atomic<std::uint64_t> key;  // 0 = empty
  std::atomic<std::uint32_t> frames_plus_one;  // 0 = not resolved (yet, or never)
  std::uint32_t truncated;      // frames beyond the table
  Frame frames[kSiteFrames];    // innermost first
};

// ---- memory --------------------------------------------------------------------------------------------------

enum class MemoryKind : std::uint8_t { kDevice, kHost, kManaged, kPool, kVirtual, kRegistered, kCount };
inline constexpr unsigned kMemoryKinds = static_cast<unsigned>(MemoryKind::kCount);

struct MemoryLive {
  std::atomic<std::uint64_t> bytes[kMemoryKinds];
  std::atomic<std::uint64_t> peak[kMemoryKinds];       // since the step began
  std::atomic<std::uint64_t> allocations;
  std::atomic<std::uint64_t> frees;
  std::atomic<std::uint64_t> failures;
  std::atomic<std::uint64_t> retries;                  // failure, burst of frees, same request again
  std::atomic<std::uint64_t> untracked;                // allocations the ledger had no room for
};

inline constexpr unsigned kMemoryPhases = 6, kBatchSizes = 4;

// What the caching allocator held at most in one phase of the step, from the probe.
struct MemoryPhase {
  std::uint64_t allocated;
  std::uint32_t phase;          // string
  std::uint32_t reserved;
};

// Written when the next step begins: peaks and counts are those of this step.  In a program that announces no steps, once
// a second in which something was allocated, freed or refused; `step` is then kNoStep.
struct MemoryStep {
  Stamp stamp;
  std::uint64_t time_ns;
  std::int64_t step;
  std::uint64_t live[kMemoryKinds];
  std::uint64_t peak[kMemoryKinds];
  std::uint64_t allocations, frees, failures, retries;
  std::uint64_t reserved_peak;  // of the caching allocator, from the probe; kUnknownBytes otherwise
  std::uint64_t allocated_peak;
  std::uint64_t device_free;    // of the device, by what was seen last and taken since; kUnknownBytes otherwise
  std::uint64_t device_total;
  std::uint32_t peak_phase, peak_module;  // where the process's own device memory grew last in this step, 0 = nowhere
  std::uint32_t batch[kBatchSizes];       // sizes of the largest tensor that a forward was given, 0 = none
  MemoryPhase phases[kMemoryPhases];      // phase 0 = unused
  std::uint64_t call_ns;        // in the calls that took and gave back memory, and between them while one was tried again
  std::uint64_t retry_ns;       // of it: from the beginning of a refused request until the same one succeeded
};

struct AllocFailure {
  Stamp stamp;
  std::uint64_t time_ns;
  std::uint64_t size;
  std::uint64_t free;           // of the device, kUnknownBytes where it could not be asked
  std::uint64_t total;
  std::uint64_t live_device;
  std::int64_t step;
  std::uint32_t phase, module, site, thread;
  std::int32_t result;
  MemoryKind kind;
  std::uint8_t retried;         // the same request succeeded later
  std::uint8_t reserved[2];
  std::uint64_t live_other;     // pool, managed and virtual memory of the process
  std::uint64_t allocator_reserved, allocator_allocated;  // as the probe saw them last; kUnknownBytes otherwise
  std::uint32_t batch[kBatchSizes];  // of the step so far
};

// ---- threads, facts, exceptions, stacks, ending ----------------------------------------------------------------

enum ThreadFlags : std::uint32_t { kThreadCalls = 1, kThreadVisits = 2, kThreadOwn = 4 };

struct ThreadEntry {
  std::atomic<std::uint32_t> tid;       // 0 = free
  std::atomic<std::uint32_t> flags;
  std::atomic<std::uint32_t> inside;    // string: the intercepted function this thread is in, 0 = none
  std::atomic<std::uint32_t> group_depth;
  std::atomic<std::uint64_t> inside_since_ns;
  std::atomic<std::uint64_t> last_ns;   // last call or visit
};

struct Fact {                   // dshang_note, environment, versions; a later one of the same key replaces
  Stamp stamp;
  std::uint64_t time_ns;
  std::uint32_t key, value;     // strings
};

struct ExceptionRecord {
  Stamp stamp;
  std::uint64_t time_ns;
  std::int64_t step;
  std::uint32_t type, message, site, phase, module, thread;
};

enum class StackSource : std::uint32_t { kNone, kWithGil, kRaw, kNative, kRefused };
inline constexpr unsigned kStackFrames = 48;

struct StackRecord {
  Stamp stamp;
  std::uint64_t time_ns;
  std::uint32_t tid;
  StackSource source;
  std::uint32_t request;        // number of the request it answers
  std::uint32_t frame_count;
  std::uint32_t truncated;
  std::uint32_t reserved;
  Frame frames[kStackFrames];
};

enum class EndingKind : std::uint32_t { kNone, kExit, kSignal, kAbort };

struct Ending {
  std::atomic<EndingKind> kind;
  std::int32_t code;            // exit status or signal number
  std::uint64_t time_ns;
  std::uint32_t tid;
  std::uint32_t reserved;
};

// ---- the file ------------------------------------------------------------------------------------------------

enum class Section : std::uint32_t {
  kOps, kCalls, kVisits, kComms, kStrings, kArena, kSites, kMemorySteps, kAllocFailures, kThreads, kFacts,
  kExceptions, kStacks, kCount
};
inline constexpr unsigned kSections = static_cast<unsigned>(Section::kCount);

struct SectionInfo {
  std::uint64_t offset;         // from the start of the file, multiple of 64
  std::uint64_t bytes;
  std::uint32_t entry_bytes;    // 1 for the arena
  std::uint32_t entries;
};

struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint64_t total_bytes;
  std::int32_t pid;
  std::int32_t rank;            // -1 = unknown
  std::int32_t local_rank;
  std::int32_t world_size;
  std::int32_t restart_count;
  std::uint32_t provisional;    // 1 until the first communicator (the rank is a claim of the environment)
  std::uint64_t pid_start_ticks;  // field 22 of /proc/<pid>/stat: tells a reused pid
  std::uint64_t job;            // hash of the job's identity
  std::uint64_t net_namespace, pid_namespace;  // inode numbers
  std::uint64_t start_ns;       // CLOCK_MONOTONIC when the process woke
  std::uint64_t start_real_ns;  // CLOCK_REALTIME at the same moment
  char host[64];
  SectionInfo sections[kSections];

  // Rings: number of records claimed so far.
  std::atomic<std::uint64_t> call_head, visit_head, memory_step_head, alloc_failure_head, fact_head,
      exception_head, stack_head;
  std::atomic<std::uint32_t> comm_count;
  std::atomic<std::uint32_t> arena_used;
  std::atomic<std::uint64_t> dropped_strings, dropped_sites, dropped_comms, dropped_threads;

  std::atomic<std::int64_t> step;          // newest announced
  std::atomic<std::uint32_t> world_rank;   // 1 + own position in a communicator of WORLD_SIZE members, 0 = none yet
  std::atomic<std::uint32_t> python;       // 0 none, 1 sites are read, 2 switched off
  std::atomic<std::uint64_t> poll_ns;           // the poller's last round
  std::atomic<std::uint64_t> poll_stuck_ns;     // since when it is inside a driver call, 0 = not
  std::atomic<std::uint64_t> graph_launches;
  std::atomic<std::uint64_t> async_error;       // first error of ncclCommGetAsyncError: (comm index << 32 | result)
  MemoryLive memory;
  Ending ending;
};

// Numbers of entries of a newly made flight memory; a reader takes them from the file.
inline constexpr std::uint32_t kOpEntries = 64, kCallEntries = 16384, kVisitEntries = 32768, kCommEntries = 4096,
                               kStringEntries = 16384, kArenaBytes = 1u << 20, kSiteEntries = 4096,
                               kMemoryStepEntries = 2048, kAllocFailureEntries = 64, kThreadEntries = 128,
                               kFactEntries = 512, kExceptionEntries = 64, kStackEntries = 64;

static_assert(sizeof(CallRecord) == 128 && alignof(CallRecord) == 8);
static_assert(sizeof(VisitRecord) == 64);
static_assert(sizeof(CommEntry) == 112);
static_assert(sizeof(StringEntry) == 16);
static_assert(sizeof(SiteEntry) == 784);
static_assert(sizeof(MemoryStep) == 320);
static_assert(sizeof(AllocFailure) == 120);
static_assert(sizeof(ThreadEntry) == 32);
static_assert(sizeof(Fact) == 24);
static_assert(sizeof(ExceptionRecord) == 48);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::is_standard_layout_v<Header> && std::is_standard_layout_v<CallRecord>);

}  // namespace dshang::flight
