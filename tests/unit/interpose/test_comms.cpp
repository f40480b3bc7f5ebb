#include <sys/mman.h>

#include <cstring>
#include <list>

#include "core/flight/reader.h"
#include "interpose/calls/numbers.h"
#include "interpose/comms/identity.h"
#include "interpose/comms/versions.h"
#include "setup.h"

using namespace setup;
using flight::CommOrigin;
using flight::CommState;

TEST_CASE("a communicator by unique id: identity, position, memory around it") {
  Process p;
  Comm comm = p.communicator(4, 2, 'a');
  const flight::CommEntry& entry = p.comm(0);
  CHECK(entry.state.load() == CommState::kReady);
  CHECK(entry.origin == CommOrigin::kInit);
  CHECK(entry.id != 0);
  CHECK(entry.nccl_hash == comms::nccl_hash(Process::unique_id('a')));
  CHECK(entry.handle == reinterpret_cast<std::uint64_t>(comm));
  CHECK(entry.rank == 2);
  CHECK(entry.size == 4);
  CHECK(entry.device == 3);
  CHECK(entry.free_before == 1000);
  CHECK(entry.free_after == 900);
  CHECK(entry.begin_ns > 0);
  CHECK(entry.ready_ns >= entry.begin_ns);
  CHECK(p.writer().header().world_rank.load() == 3);  // it has WORLD_SIZE members
  CHECK(p.writer().header().provisional == 0);
}

namespace {

// The values of all facts of that name, oldest first.
std::vector<std::string> facts(Process& p, const std::string& wanted) {
  flight::Reader reader(&p.writer().header(), flight::Writer::total_bytes());
  auto text = [&](std::uint32_t id) {
    char bytes[flight::kLongestString];
    std::size_t length = 0;
    reader.string(id, bytes, &length);
    return std::string(bytes, length);
  };
  std::vector<std::string> found;
  for (std::uint64_t n = 0; n < reader.facts().head; ++n) {
    flight::Copy<flight::Fact> fact;
    REQUIRE(reader.fact(n, &fact) == flight::SlotState::kComplete);
    if (text(fact->key) == wanted) found.push_back(text(fact->value));
  }
  return found;
}

}  // namespace

TEST_CASE("the versions of NCCL and of the CUDA runtime are facts of the first communicator") {
  Process p;
  p.communicator(4, 2, 'a');
  p.communicator(2, 0, 'b');
  CHECK(facts(p, "version.nccl") == std::vector<std::string>{"2.28.7"});
  CHECK(facts(p, "version.cuda_runtime") == std::vector<std::string>{"13.1"});
  CHECK(std::string(comms::nccl_version_text(2708).text) == "2.7.8");
  CHECK(std::string(comms::nccl_version_text(2804).text) == "2.8.4");
  CHECK(std::string(comms::nccl_version_text(20908).text) == "2.9.8");
  CHECK(std::string(comms::nccl_version_text(22105).text) == "2.21.5");
}

TEST_CASE("identity depends on the unique id and the size alone") {
  std::uint64_t ids[3];
  for (int rank : {0, 1}) {
    Process p;
    p.communicator(4, rank, 'a');
    ids[rank] = p.comm(0).id;
  }
  CHECK(ids[0] == ids[1]);
  Process p;
  p.communicator(4, 0, 'b');
  CHECK(p.comm(0).id != ids[0]);
  p.communicator(2, 0, 'a');
  CHECK(p.comm(1).id != ids[0]);
  CHECK(p.writer().header().world_rank.load() == 1);
}

TEST_CASE("equal unique ids (NCCL_COMM_ID) give a communicator of its own each time") {
  std::uint64_t ids[2][2];
  for (int rank : {0, 1}) {
    Process p;
    p.communicator(2, rank, 'a');
    p.communicator(2, rank, 'a');
    ids[rank][0] = p.comm(0).id;
    ids[rank][1] = p.comm(1).id;
  }
  CHECK(ids[0][0] != ids[0][1]);
  CHECK(ids[0][0] == ids[1][0]);
  CHECK(ids[0][1] == ids[1][1]);
}

TEST_CASE("several ranks of a communicator in one process share its identity") {
  Process p;
  p.communicator(2, 0, 'a');
  p.communicator(2, 1, 'a');
  CHECK(p.comm(0).id == p.comm(1).id);
}

TEST_CASE("NCCL's own hash of a unique id") {
  UniqueId id{};
  id.bytes[0] = 1;
  std::uint64_t expected = 5381;
  for (int i = 0; i < 128; ++i) expected = ((expected << 5) + expected) ^ static_cast<std::uint64_t>(id.bytes[i]);
  CHECK(comms::nccl_hash(id) == expected);
}

TEST_CASE("a failed creation is said to have failed, and its retry has the same identity") {
  Process p;
  p.nccl->returns("ncclCommInitRank", 2);
  Comm comm = nullptr;
  CHECK(call_ncclCommInitRank(&comm, 4, Process::unique_id('a'), 0) == Result{2});
  CHECK(p.comm(0).state.load() == CommState::kFailed);
  CHECK(p.comm(0).end_ns > 0);
  CHECK(p.writer().header().provisional == 1);
  p.nccl->returns("ncclCommInitRank", 0);
  p.communicator(4, 0, 'a');
  CHECK(p.comm(1).id == p.comm(0).id);
}

TEST_CASE("a creation is visible while it blocks") {
  Process p;
  static Process* process;
  static int seen;
  process = &p;
  seen = 0;
  p.nccl->on_call([](const char* name) {
    if (std::string(name) != "ncclCommInitRank") return;
    ++seen;
    CHECK(process->comm(0).state.load() == CommState::kCreating);
    CHECK(process->comm(0).size == 4);
    CHECK(process->comm(0).id != 0);
  });
  p.communicator();
  CHECK(seen == 1);
}

TEST_CASE("splits: parent, ordinal and colour tell them apart") {
  Process p;
  Comm world = p.communicator();
  auto split = [&](int color) {
    Comm child = nullptr;
    call_ncclCommSplit(world, color, 0, &child, nullptr);
    return child;
  };
  p.nccl->child(1, 2);
  Comm child = split(7);
  REQUIRE(child);
  const flight::CommEntry& entry = p.comm(1);
  CHECK(entry.origin == CommOrigin::kSplit);
  CHECK(entry.state.load() == CommState::kReady);
  CHECK(entry.parent == p.comm(0).id);
  CHECK(entry.color == 7);
  CHECK(entry.ordinal == 1);
  CHECK(entry.rank == 1);
  CHECK(entry.size == 2);
  CHECK(entry.id == comms::split_id(p.comm(0).id, 1, 7));
  CHECK(p.op(p.last()) == "split");
  CHECK(p.last().number == 1);
  CHECK(p.last().comm == 0);
  CHECK(p.comm(0).calls.load() == 0);  // counted apart from collectives

  CHECK_FALSE(split(kNoColor));
  CHECK(p.comm(2).id == 0);
  CHECK(p.comm(2).ordinal == 2);
  CHECK(p.comm(2).state.load() == CommState::kReady);
  split(7);
  CHECK(p.comm(3).ordinal == 3);
  CHECK(p.comm(3).id != entry.id);
  p.nccl->returns("ncclCommSplit", 4);
  split(7);
  CHECK(p.comm(4).state.load() == CommState::kFailed);
  p.nccl->returns("ncclCommSplit", 0);
  split(8);
  CHECK(p.comm(5).ordinal == 4);
  CHECK(p.comm(5).id != comms::split_id(p.comm(0).id, 4, 7));

  all_reduce(child);
  CHECK(p.last().comm == 1);
  CHECK(p.last().number == 1);
}

TEST_CASE("shrinks: the order of the excluded ranks does not matter") {
  Process p;
  Comm world = p.communicator();
  int excluded[] = {3, 1}, same[] = {1, 3}, other[] = {1, 2};
  CHECK(comms::shrink_id(5, 1, excluded, 2) == comms::shrink_id(5, 1, same, 2));
  CHECK(comms::shrink_id(5, 1, excluded, 2) != comms::shrink_id(5, 1, other, 2));
  CHECK(comms::shrink_id(5, 1, excluded, 2) != comms::shrink_id(5, 2, excluded, 2));
  Comm child = nullptr;
  call_ncclCommShrink(world, excluded, 2, &child, nullptr, 0);
  REQUIRE(child);
  CHECK(p.comm(1).origin == CommOrigin::kShrink);
  CHECK(p.comm(1).id == comms::shrink_id(p.comm(0).id, 1, excluded, 2));
  CHECK(p.op(p.last()) == "shrink");
}

TEST_CASE("a grown communicator: new ranks and the root know the unique id, the root joins it to the parent") {
  UniqueId id = Process::unique_id('g');
  std::uint64_t on_new, on_root, on_old;
  {
    Process p;
    Comm child = nullptr;
    call_ncclCommGrow(nullptr, 6, &id, 5, &child, nullptr);
    REQUIRE(child);
    CHECK(p.calls() == 0);
    CHECK(p.comm(0).parent == 0);
    CHECK(p.comm(0).origin == CommOrigin::kGrow);
    on_new = p.comm(0).id;
  }
  for (bool root : {true, false}) {
    Process p;
    Comm world = p.communicator(), child = nullptr;
    call_ncclCommGrow(world, 6, root ? &id : nullptr, -1, &child, nullptr);
    CHECK(p.comm(1).parent == p.comm(0).id);
    CHECK(p.comm(1).ordinal == 1);
    CHECK(p.comm(1).size == 6);
    (root ? on_root : on_old) = p.comm(1).id;
  }
  CHECK(on_root == on_new);
  CHECK(on_old != on_new);
}

TEST_CASE("all communicators of one process") {
  Process p;
  Comm comms[3] = {};
  int devices[] = {5, 6, 7};
  call_ncclCommInitAll(comms, 3, devices);
  REQUIRE(p.comms() == 3);
  for (int i = 0; i < 3; ++i) {
    CHECK(p.comm(i).state.load() == CommState::kReady);
    CHECK(p.comm(i).origin == CommOrigin::kInitAll);
    CHECK(p.comm(i).id == p.comm(0).id);
    CHECK(p.comm(i).rank == i);
    CHECK(p.comm(i).size == 3);
    CHECK(p.comm(i).device == static_cast<unsigned>(devices[i]));
    all_reduce(comms[i]);
    CHECK(p.last().comm == static_cast<unsigned>(i));
    CHECK(p.last().number == 1);
  }
  CHECK(p.nccl->count("ncclGetUniqueId") == 1);
  call_ncclCommInitAll(comms, 3, nullptr);
  CHECK(p.comm(3).id != p.comm(0).id);
  CHECK(p.comm(4).device == 1);
  CHECK(p.writer().header().world_rank.load() == 0);
}

TEST_CASE("created in a group: the handle is known at its end") {
  Process p;
  Comm first = nullptr, second = nullptr, child = nullptr;
  call_ncclGroupStart();
  call_ncclCommInitRank(&first, 2, Process::unique_id('a'), 0);
  call_ncclCommInitRank(&second, 2, Process::unique_id('a'), 1);
  CHECK(p.comm(0).state.load() == CommState::kCreating);
  call_ncclGroupEnd();
  CHECK(p.comm(0).handle == reinterpret_cast<std::uint64_t>(first));
  CHECK(p.comm(1).handle == reinterpret_cast<std::uint64_t>(second));
  CHECK(p.comm(1).rank == 1);

  call_ncclGroupStart();
  call_ncclCommSplit(first, 0, 0, &child, nullptr);
  p.nccl->returns("ncclGroupEnd", 3);
  call_ncclGroupEnd();
  CHECK(p.comm(2).state.load() == CommState::kFailed);
  CHECK((p.flags(p.last()) & flight::kCallFailed));
  p.nccl->returns("ncclGroupEnd", 0);
  call_ncclCommSplit(first, 0, 0, &child, nullptr);
  CHECK(p.comm(3).ordinal == 1);
}

TEST_CASE("created in the background, handle at once: ready when NCCL says so") {
  Process p;
  p.nccl->nonblocking(true, true);
  Comm comm = nullptr;
  CHECK(call_ncclCommInitRankConfig(&comm, 4, Process::unique_id('a'), 1, nullptr) == Result::kInProgress);
  CHECK(p.comm(0).state.load() == CommState::kCreating);
  Result error;
  p.nccl->returns("ncclCommGetAsyncError", 7);
  call_ncclCommGetAsyncError(comm, &error);
  CHECK(p.comm(0).state.load() == CommState::kCreating);
  p.nccl->finish_creations();
  p.nccl->returns("ncclCommGetAsyncError", 0);
  call_ncclCommGetAsyncError(comm, &error);
  CHECK(p.comm(0).state.load() == CommState::kReady);
  CHECK(p.comm(0).handle == reinterpret_cast<std::uint64_t>(comm));
  CHECK(p.nccl->asked_too_early() == 0);
  CHECK(p.writer().header().async_error.load() == 0);
}

TEST_CASE("created in the background, handle late: known at first use") {
  Process p;
  Comm world = p.communicator();
  p.nccl->nonblocking(true, false);
  auto* where = new Comm(nullptr);
  call_ncclCommSplit(world, 1, 0, where, nullptr);
  CHECK(p.comm(1).state.load() == CommState::kCreating);
  p.nccl->finish_creations();
  REQUIRE(*where);
  all_reduce(*where);
  CHECK(p.last().comm == 1);
  CHECK(p.comm(1).state.load() == CommState::kReady);
  CHECK(p.comm(1).size == 2);
  delete where;
}

TEST_CASE("the place of a late handle may be gone when an unknown communicator comes") {
  Process p;
  runtime_double::state.wakes_up = false;
  Comm unseen = nullptr;
  call_ncclCommInitRank(&unseen, 4, Process::unique_id('a'), 1);
  runtime_double::state.wakes_up = true;
  Comm world = p.communicator(4, 1, 'b');
  p.nccl->nonblocking(true, false);
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  call_ncclCommSplit(world, 1, 0, static_cast<CommOut>(page), nullptr);
  munmap(page, 4096);
  all_reduce(unseen);
  CHECK(p.comm(p.last().comm).origin == CommOrigin::kUnknown);
  CHECK(p.comm(1).state.load() == CommState::kCreating);
}

TEST_CASE("the first asynchronous error is kept") {
  Process p;
  Comm first = p.communicator(4, 1, 'a'), second = p.communicator(4, 1, 'b');
  Result error;
  p.nccl->returns("ncclCommGetAsyncError", 6);
  call_ncclCommGetAsyncError(second, &error);
  CHECK(error == Result{6});
  p.nccl->returns("ncclCommGetAsyncError", 1);
  call_ncclCommGetAsyncError(first, &error);
  CHECK(p.writer().header().async_error.load() == (1ull << 32 | 6));
}

TEST_CASE("communicators that are ordered to fail answer an error, and its words") {
  Process p;
  Comm first = p.communicator(4, 1, 'a');
  static std::list<runtime::Failure> orders;  // each valid for good
  runtime::Failure& order = orders.emplace_back();
  order.comms = p.comms();
  std::strcpy(order.why, "the ranks disagree");
  runtime_double::state.failure = &order;
  Comm later = p.communicator(4, 1, 'b');
  Result error;
  SECTION("nobody has asked: NCCL's own words") { CHECK(call_ncclGetLastError(nullptr) == nullptr); }
  SECTION("one that was there") {
    REQUIRE(call_ncclCommGetAsyncError(first, &error) == Result::kSuccess);
    CHECK(error == Result::kInvalidUsage);
    CHECK(call_ncclGetLastError(nullptr) == std::string("the ranks disagree"));
    CHECK(call_ncclGetLastError(first) == std::string("the ranks disagree"));
    CHECK(p.writer().header().async_error.load() == 0);  // NCCL has none
  }
  SECTION("in the background") {
    p.nccl->returns("ncclCommGetAsyncError", 7);
    call_ncclCommGetAsyncError(first, &error);
    CHECK(error == Result::kInvalidUsage);
  }
  SECTION("a rank is gone") {
    order.rank_is_gone = true;
    call_ncclCommGetAsyncError(first, &error);
    CHECK(error == Result::kRemoteError);
  }
  SECTION("NCCL's own error comes first") {
    p.nccl->returns("ncclCommGetAsyncError", 2);
    call_ncclCommGetAsyncError(first, &error);
    CHECK(error == Result{2});
    CHECK(call_ncclGetLastError(first) == nullptr);
  }
  SECTION("one made afterwards is none of them") {
    call_ncclCommGetAsyncError(later, &error);
    CHECK(error == Result::kSuccess);
  }
  SECTION("a forked child has no order") {
    call_ncclCommGetAsyncError(first, &error);
    runtime_double::fall_asleep();
    call_ncclCommGetAsyncError(first, &error);
    CHECK(error == Result::kSuccess);
    CHECK(call_ncclGetLastError(first) == nullptr);
  }
}

TEST_CASE("the end of a communicator") {
  Process p;
  Comm comm = p.communicator(4, 1, 'a');
  call_ncclCommFinalize(comm);
  CHECK(p.op(p.last()) == "finalize");
  CHECK(p.comm(0).state.load() == CommState::kFinalized);
  CHECK(p.comm(0).end_ns == 0);
  call_ncclCommDestroy(comm);
  CHECK(p.op(p.last()) == "destroy");
  CHECK(p.last().comm == 0);
  CHECK(p.comm(0).state.load() == CommState::kDestroyed);
  CHECK(p.comm(0).end_ns > 0);
  Comm other = p.communicator(4, 1, 'b');
  call_ncclCommAbort(other);
  CHECK(p.comm(1).state.load() == CommState::kAborted);
  std::uint64_t before = p.calls();
  CHECK(call_ncclCommAbort(nullptr) == Result::kSuccess);
  CHECK(p.last().comm == calls::kNoComm);
  CHECK(p.calls() == before + 1);
  CHECK(p.nccl->count("ncclCommAbort") == 2);
}

TEST_CASE("a communicator that nobody saw being created is equal to no other") {
  Process p;
  runtime_double::state.wakes_up = false;
  Comm unseen = nullptr;
  call_ncclCommInitRank(&unseen, 4, Process::unique_id('a'), 1);
  runtime_double::state.wakes_up = true;
  Comm seen = p.communicator(4, 1, 'b');
  all_reduce(unseen);
  CHECK(p.last().comm == 1);
  CHECK(p.comm(1).origin == CommOrigin::kUnknown);
  CHECK(p.comm(1).id != 0);
  CHECK(p.comm(1).size == 4);
  CHECK(p.comm(1).rank == 1);
  all_reduce(unseen);
  CHECK(p.last().number == 2);
  CHECK(p.comms() == 2);
  all_reduce(seen);
  CHECK(p.last().comm == 0);
}

TEST_CASE("many communicators come and go") {
  Process p;
  std::vector<Comm> comms;
  constexpr std::uint32_t kMade = flight::kCommEntries + 88;
  for (std::uint32_t i = 0; i < kMade; ++i) {
    Comm comm = p.communicator(4, static_cast<int>(i % 4), static_cast<char>(i));
    comms.push_back(comm);
    if (i % 3 == 0) {
      call_ncclCommDestroy(comms[i / 2]);
      comms[i / 2] = nullptr;
    }
  }
  CHECK(p.comms() == flight::kCommEntries);
  CHECK(p.writer().header().dropped_comms.load() == kMade - flight::kCommEntries);
  for (std::size_t i = 0; i < comms.size(); ++i) {
    if (!comms[i]) continue;
    CHECK(all_reduce(comms[i]) == Result::kSuccess);
    CHECK(p.last().comm == (i < flight::kCommEntries ? i : calls::kNoComm));
    CHECK(p.last().number == (i < flight::kCommEntries ? 1 : 0));
  }
}
