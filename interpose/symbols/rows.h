// What follows from the rows of nccl.def, cuda.def and libc.def: one enumerator, name, kind and op each.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "core/flight/format.h"
#include "interpose/symbols/parameters.h"
#include "interpose/symbols/types.h"

namespace dshang::interpose {

enum class Family : std::uint8_t { kNccl, kCuda, kLibc };

enum class Kind : std::uint8_t {
  // NCCL
  kCollective, kSend, kRecv, kOneSided,          // call records
  kGroupStart, kGroupEnd, kGroupSimulateEnd,
  kCreate, kDerive,                              // a new communicator: handlers in comms/
  kFinalize, kDestroy, kAbort, kChange,          // of an existing one, recorded
  kAsyncError, kLastError, kPassive,             // not recorded
  // CUDA
  kSetDevice, kAllocate, kRegister, kFree, kEntryPoint, kGraphLaunch,
  kSynchronize,                                  // the host waits for the GPU: said where the thread is
  // libc
  kEnd,
};

enum class Row : std::uint16_t {
#define DSHANG_ROW(name, ...) name,
#include "interpose/symbols/nccl.def"
#include "interpose/symbols/cuda.def"
#include "interpose/symbols/libc.def"
#undef DSHANG_ROW
  kRowCount
};
inline constexpr unsigned kRows = static_cast<unsigned>(Row::kRowCount);
constexpr unsigned index(Row row) { return static_cast<unsigned>(row); }

struct RowInfo {
  const char* name;
  const char* op;  // name in call records, "" = none is made
  Family family;
  Kind kind;
  bool reduces;    // has a reduce op
  bool rooted;     // has a root
  flight::MemoryKind memory;    // of CUDA's allocations, kCount = none
  flight::EndingKind ending;    // of libc's endings, kNone = none
};

template <typename Wanted, typename... Types>
inline constexpr bool kAmong = (std::is_same_v<Wanted, Types> || ...);

namespace row_info {
using namespace abi;
using enum Kind;
using flight::EndingKind;
using flight::MemoryKind;

inline constexpr RowInfo kTable[kRows] = {
#define DSHANG_ROW(name, result, parameters, kind, op)                                                   \
  {#name, std::string_view(#op) == "none" ? "" : #op, Family::kNccl, kind,                               \
   kAmong<RedOp DSHANG_TYPES parameters>, kAmong<Root DSHANG_TYPES parameters>, MemoryKind::kCount, EndingKind::kNone},
#include "interpose/symbols/nccl.def"
#undef DSHANG_ROW
#define DSHANG_ROW(name, result, parameters, kind, memory) \
  {#name, "", Family::kCuda, kind, false, false, MemoryKind::memory, EndingKind::kNone},
#include "interpose/symbols/cuda.def"
#undef DSHANG_ROW
#define DSHANG_ROW(name, result, parameters, kind, ending) \
  {#name, "", Family::kLibc, kind, false, false, MemoryKind::kCount, EndingKind::ending},
#include "interpose/symbols/libc.def"
#undef DSHANG_ROW
};

template <typename Result, typename... P>
struct Function {
  using Type = Result (*)(P...);
};
template <Row R>
struct Signature;
#define DSHANG_ROW(name, result, parameters, ...) \
  template <>                                     \
  struct Signature<Row::name> : Function<result DSHANG_TYPES parameters> {};
#include "interpose/symbols/nccl.def"
#include "interpose/symbols/cuda.def"
#include "interpose/symbols/libc.def"
#undef DSHANG_ROW
}  // namespace row_info

// The type of a pointer to the row's function.
template <Row R>
using SignatureOf = typename row_info::Signature<R>::Type;

constexpr const RowInfo& info(Row row) { return row_info::kTable[index(row)]; }

// ---- ops: the distinct op names, in the order of the rows ---------------------------------------------------------

struct OpTable {
  flight::OpInfo ops[flight::kOpEntries] = {};
  std::uint8_t count = 0;
  std::uint8_t of_row[kRows] = {};  // what CallRecord::op holds; rows without op: 0
};

constexpr std::uint32_t traits_of(const RowInfo& row) {
  std::uint32_t traits = (row.reduces ? flight::kOpReduces : 0u) | (row.rooted ? flight::kOpRooted : 0u);
  switch (row.kind) {
    case Kind::kCollective: return traits | flight::kOpCollective;
    case Kind::kSend: return traits | flight::kOpSend;
    case Kind::kRecv: return traits | flight::kOpRecv;
    case Kind::kOneSided: return traits | flight::kOpOneSided;
    default: return traits | flight::kOpLifeCycle;
  }
}

consteval OpTable make_op_table() {
  OpTable table;
  for (unsigned row = 0; row < kRows; ++row) {
    std::string_view op = row_info::kTable[row].op;
    if (op.empty()) continue;
    std::uint8_t at = 0;
    while (at < table.count && op != table.ops[at].name) ++at;
    if (at == table.count) {
      flight::OpInfo& added = table.ops[table.count++];
      for (std::size_t i = 0; i < op.size(); ++i) added.name[i] = op[i];  // too long a name: not a constant expression
      added.traits = traits_of(row_info::kTable[row]);
    }
    table.of_row[row] = at;
  }
  return table;
}

inline constexpr OpTable kOpTable = make_op_table();

}  // namespace dshang::interpose
