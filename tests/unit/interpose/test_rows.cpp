#include <cstring>
#include <tuple>

#include "setup.h"

using namespace setup;

namespace {

// Some value for a parameter of each type.
template <typename T>
T some() {
  return T{};
}
template <>
CommOut some() {
  static Comm comm;
  return &comm;
}
template <>
Result* some() {
  static Result result;
  return &result;
}
template <>
PointerOut some() {
  static void* address;
  return &address;
}

template <typename R, typename... P>
R call_with_some(R (*function)(P...)) {
  return function(some<P>()...);
}

template <typename T>
int number(T result) {
  if constexpr (std::is_pointer_v<T>) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(result));
  } else {
    return static_cast<int>(result);
  }
}

void check_row(const FakeControl* fake, Row row, auto function) {
  INFO(info(row).name);
  int before = fake->count(info(row).name);
  fake->returns(info(row).name, 0);
  CHECK(number(call_with_some(function)) == 0);
  CHECK(fake->count(info(row).name) == before + 1);
  // A group end is refused inside no group; the others hand on what they are given.
  fake->returns(info(row).name, 3);
  int result = number(call_with_some(function));
  if (info(row).kind == Kind::kAsyncError) {
    CHECK(*some<Result*>() == Result{3});
  } else if (row != Row::ncclBcast) {  // which returns what ncclBroadcast returns
    CHECK(result == 3);
  }
  fake->returns(info(row).name, 0);
}

void check_all_rows(Process& p) {
#define DSHANG_ROW(name, ...) check_row(p.nccl, Row::name, &call_##name);
#include "interpose/symbols/nccl.def"
#undef DSHANG_ROW
#define DSHANG_ROW(name, ...) check_row(p.cuda, Row::name, &call_##name);
#include "interpose/symbols/cuda.def"
#undef DSHANG_ROW
}

}  // namespace

TEST_CASE("every row reaches the real function and returns its result, inert, disabled and awake") {
  Process p;
  runtime_double::state.wakes_up = false;
  SECTION("inert") { check_all_rows(p); }
  SECTION("disabled") {
    runtime::disabled_slot = true;
    check_all_rows(p);
  }
  SECTION("awake") {
    runtime_double::wake_up();
    check_all_rows(p);
  }
}

TEST_CASE("every row that makes call records has its op, under NCCL's name in snake case") {
  for (unsigned row = 0; row < kRows; ++row) {
    const RowInfo& info = row_info::kTable[row];
    if (!*info.op) continue;
    const flight::OpInfo& op = kOpTable.ops[kOpTable.of_row[row]];
    CHECK(std::strcmp(op.name, info.op) == 0);
    CHECK(op.traits != 0);
  }
  CHECK(interpose::wrappers::op_count() == kOpTable.count);
  CHECK(kOpTable.of_row[index(Row::ncclBcast)] == kOpTable.of_row[index(Row::ncclBroadcast)]);
}

TEST_CASE("the ops in flight memory are those of the table") {
  Process p;
  p.communicator();
  const flight::SectionInfo& section = p.writer().header().sections[static_cast<unsigned>(flight::Section::kOps)];
  auto* ops = reinterpret_cast<const flight::OpInfo*>(reinterpret_cast<const char*>(&p.writer().header()) + section.offset);
  for (unsigned i = 0; i < kOpTable.count; ++i) CHECK(std::strcmp(ops[i].name, kOpTable.ops[i].name) == 0);
}
