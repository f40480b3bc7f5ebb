#include <errno.h>

#include <thread>

#include "catch.h"
#include "core/rank/context.h"
#include "core/rank/early_names.h"
#include "core/rank/ranges.h"
#include "dshang.h"
#include "flight_memory.h"

using namespace dshang;
using flight::VisitKind;
using test::FlightMemory;

TEST_CASE("the functions of dshang.h write visits and facts") {
  FlightMemory memory;
  errno = 1234;
  dshang_step(3);
  dshang_phase_push("forward");
  dshang_module_push("layer.1");
  dshang_note("dataset length", "100");
  CHECK(memory.visits() == 3);
  CHECK(memory.visit(0).step == 3);
  CHECK(memory.visit(1).kind == VisitKind::kPhasePush);
  CHECK(memory.text(memory.visit(2).module) == "layer.1");
  CHECK(memory.text(memory.visit(2).phase) == "forward");
  rank::Purpose purpose = rank::take_purpose(memory.writer);
  CHECK(purpose.step == 3);
  CHECK(memory.text(purpose.module) == "layer.1");
  dshang_module_pop();
  dshang_phase_pop();
  CHECK(memory.visit(3).kind == VisitKind::kModuleExit);
  CHECK(memory.visit(4).kind == VisitKind::kPhasePop);
  CHECK(memory.facts() == std::vector<std::string>{"dataset length=100"});
  CHECK(errno == 1234);
}

TEST_CASE("null pointers and pops too many are harmless") {
  FlightMemory memory;
  dshang_phase_pop();
  dshang_module_pop();
  dshang_note(nullptr, "value");
  dshang_note("", "value");
  dshang_note("key", nullptr);
  dshang_phase_push(nullptr);
  dshang_module_push(nullptr);
  CHECK(rank::take_purpose(memory.writer).phase == 0);
  dshang_module_pop();
  dshang_phase_pop();
  CHECK(memory.facts() == std::vector<std::string>{"key="});
}

TEST_CASE("what is said while the process is inert is there when it wakes") {
  errno = 99;
  dshang_note("seed", "7");
  dshang_step(41);
  dshang_step(42);
  dshang_phase_push("setup");
  dshang_phase_push("gone");
  dshang_phase_pop();
  dshang_module_push("model");
  dshang_phase_push(nullptr);
  CHECK(errno == 99);
  FlightMemory memory;
  CHECK(memory.facts() == std::vector<std::string>{"seed=7"});
  CHECK(memory.writer.header().step.load() == 42);
  // Another thread sees the process's phase at once, this one's modules become visits at its first use.
  std::thread([&] { CHECK(rank::take_purpose(memory.writer).step == 42); }).join();
  rank::Purpose purpose = rank::take_purpose(memory.writer);
  CHECK(purpose.step == 42);
  CHECK(memory.text(purpose.module) == "model");
  std::vector<std::string> said;
  for (std::uint64_t n = 0; n < memory.visits(); ++n) {
    const auto& visit = memory.visit(n);
    said.push_back(std::to_string(int(visit.kind)) + " " + memory.text(visit.phase) + " " +
                   memory.text(visit.module));
  }
  CHECK(said == std::vector<std::string>{"3 setup ", "5  model", "1  "});
  dshang_phase_pop();
  CHECK(memory.text(rank::take_purpose(memory.writer).phase) == "setup");
  dshang_phase_pop();
  dshang_module_pop();
  CHECK(rank::take_purpose(memory.writer).phase == 0);
}

TEST_CASE("long names are cut, before waking at another length than after") {
  const std::string name(10000, 'x');
  dshang_phase_push(name.c_str());
  dshang_note("long", name.c_str());
  FlightMemory memory;
  CHECK(memory.text(rank::look_purpose(memory.writer).phase) == name.substr(0, rank::kEarlyLength));
  CHECK(memory.facts().back() == "long=" + name.substr(0, rank::kEarlyLength));
  dshang_phase_push(name.c_str());
  CHECK(memory.text(rank::look_purpose(memory.writer).phase) == name.substr(0, 4096));
  dshang_module_push(name.c_str());
  dshang_note("long", name.c_str());
  CHECK(memory.facts().back() == "long=" + name.substr(0, 4096));
  dshang_module_pop();
  dshang_phase_pop();
  dshang_phase_pop();
}

// Here, because the next test fills the table of early names for good.
TEST_CASE("ranges begun while the process is inert end when it is awake") {
  dshang_range_push(1, "backward");
  dshang_range_push(1, "backward");
  FlightMemory memory;
  CHECK(memory.text(rank::look_purpose(memory.writer).phase) == "backward");
  dshang_range_pop(1);
  CHECK(memory.text(rank::look_purpose(memory.writer).phase) == "backward");
  dshang_range_pop(1);
  CHECK(memory.text(rank::look_purpose(memory.writer).phase) == "");
}

TEST_CASE("more early names than there is room for are dropped") {
  for (unsigned i = 0; i < rank::kEarlyNames + 10; ++i) {
    std::string name = "name " + std::to_string(i);
    std::uint32_t first = rank::early_name(name.c_str());
    CHECK(rank::early_name(name.c_str()) == first);
  }
  CHECK(rank::early_name("one more") == 0);
  CHECK(rank::early_name(nullptr) == 0);
  CHECK(rank::early_name("") == 0);
  dshang_phase_push("one more");
  dshang_phase_pop();
  for (unsigned i = 0; i < rank::kEarlyNotes + 10; ++i) dshang_note("name 5", "name 6");
  FlightMemory memory;
  std::size_t notes = memory.facts().size();
  CHECK(notes <= rank::kEarlyNotes);
  CHECK(notes > rank::kEarlyNotes / 2);
}

TEST_CASE("threads do not see each other's phases") {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  FlightMemory memory;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::string name = "thread " + std::to_string(t);
      // Fewer visits than the ring has room for.
      for (int i = 0; i < 1000 && !stop.load(); ++i) {
        dshang_phase_push(name.c_str());
        dshang_module_push("layer");
        rank::Purpose purpose = rank::take_purpose(memory.writer);
        if (memory.text(purpose.phase) != name) stop.store(true);
        dshang_module_pop();
        dshang_phase_pop();
      }
    });
  }
  for (int i = 0; i < 2000 && !stop.load(); ++i) {
    dshang_step(i);
    std::this_thread::yield();
  }
  CHECK_FALSE(stop.exchange(true));
  for (std::thread& thread : threads) thread.join();
  CHECK(memory.writer.header().step.load() == 1999);
}

TEST_CASE("deeper than the stacks a thread has no name, and its way back fits") {
  FlightMemory memory;
  auto phase = [&] { return memory.text(rank::look_purpose(memory.writer).phase); };
  auto module = [&] { return memory.text(rank::look_purpose(memory.writer).module); };
  for (unsigned depth = 1; depth <= rank::kDepth + 3; ++depth) {
    dshang_phase_push(("phase " + std::to_string(depth)).c_str());
    dshang_module_push(("module " + std::to_string(depth)).c_str());
  }
  CHECK(phase() == "");
  CHECK(module() == "");
  for (unsigned n = 0; n < 3; ++n) dshang_phase_pop(), dshang_module_pop();
  CHECK(phase() == "phase 64");
  CHECK(module() == "module 64");
  for (unsigned n = 0; n < rank::kDepth - 1; ++n) dshang_phase_pop(), dshang_module_pop();
  CHECK(phase() == "phase 1");
  CHECK(module() == "module 1");
  for (unsigned n = 0; n < 5; ++n) dshang_phase_pop(), dshang_module_pop();
  dshang_phase_push("after");
  CHECK(phase() == "after");
  dshang_phase_pop();
}

TEST_CASE("a thread without a phase of its own is in that of the process, its modules are its own") {
  FlightMemory memory;
  dshang_step(1);  // this thread's phases are the process's from now on
  dshang_phase_push("backward");
  dshang_module_push("layer");
  std::thread([&] {
    rank::Purpose purpose = rank::look_purpose(memory.writer);
    CHECK(memory.text(purpose.phase) == "backward");
    CHECK(purpose.module == 0);
    dshang_phase_push("prefetch");
    CHECK(memory.text(rank::look_purpose(memory.writer).phase) == "prefetch");
    dshang_phase_pop();
    dshang_phase_pop();  // one too many takes nothing from the other thread
    CHECK(memory.text(rank::look_purpose(memory.writer).phase) == "backward");
  }).join();
  CHECK(memory.text(rank::look_purpose(memory.writer).phase) == "backward");
  dshang_module_pop();
  dshang_phase_pop();
}
