#include <errno.h>

#include <thread>

#include "catch.h"
#include "core/rank/context.h"
#include "core/rank/early_names.h"
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
