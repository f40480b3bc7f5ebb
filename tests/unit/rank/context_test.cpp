#include "core/rank/context.h"

#include <thread>

#include "catch.h"
#include "core/rank/step_listener.h"
#include "flight_memory.h"

using namespace dshang;
using flight::VisitKind;
using test::FlightMemory;

namespace {

std::int64_t heard_step, announced_step;
const flight::Writer* heard_in;

std::uint32_t id(const FlightMemory& memory, const char* text) { return memory.writer.string(text); }

}  // namespace

TEST_CASE("a step is told to the listener before it is announced") {
  FlightMemory memory;
  heard_in = &memory.writer;
  rank::begin_step(memory.writer, 4, 0);
  rank::step_listener.store([](std::int64_t step) {
    heard_step = step;
    announced_step = heard_in->header().step.load();
  });
  rank::begin_micro_step(memory.writer, 3);
  CHECK(memory.last_visit().micro == 3);
  rank::begin_step(memory.writer, 5, 17);
  CHECK(heard_step == 5);
  CHECK(announced_step == 4);
  CHECK(memory.writer.header().step.load() == 5);
  CHECK(memory.last_visit().kind == VisitKind::kStep);
  CHECK(memory.last_visit().step == 5);
  CHECK(memory.last_visit().site == 17);
  CHECK(memory.last_visit().micro == 0);
  CHECK(rank::take_purpose(memory.writer).step == 5);
}

TEST_CASE("phases and modules nest") {
  FlightMemory memory;
  const flight::Writer& w = memory.writer;
  CHECK(rank::take_purpose(w).step == flight::kNoStep);
  rank::push_phase(w, id(memory, "forward"), 0);
  rank::enter_module(w, id(memory, "model"), 0);
  rank::enter_module(w, id(memory, "layer"), 0);
  rank::push_phase(w, id(memory, "eval"), 0);
  CHECK(memory.text(rank::take_purpose(w).phase) == "eval");
  CHECK(memory.text(rank::take_purpose(w).module) == "layer");
  CHECK(rank::take_purpose(w).visits_before == 4);
  rank::exit_module(w);
  CHECK(memory.text(memory.last_visit().module) == "layer");
  CHECK(memory.last_visit().kind == VisitKind::kModuleExit);
  CHECK(memory.text(rank::take_purpose(w).module) == "model");
  rank::pop_phase(w);
  CHECK(memory.text(memory.last_visit().phase) == "eval");
  CHECK(memory.text(rank::take_purpose(w).phase) == "forward");
  rank::pop_phase(w);
  rank::exit_module(w);
  CHECK(rank::take_purpose(w).phase == 0);
  CHECK(rank::take_purpose(w).module == 0);
  std::uint64_t before = memory.visits();
  rank::pop_phase(w);
  rank::exit_module(w);
  CHECK(memory.visits() == before);
}

TEST_CASE("a visit outside every phase is over where a step or a phase begins") {
  FlightMemory memory;
  const flight::Writer& w = memory.writer;
  rank::visit_module(w, id(memory, "layer"), id(memory, "forward"), 0, 0);
  CHECK(memory.text(rank::take_purpose(w).phase) == "forward");
  rank::push_phase(w, id(memory, "save"), 0);
  CHECK(memory.text(rank::take_purpose(w).phase) == "save");
  CHECK(rank::take_purpose(w).module == 0);
  rank::pop_phase(w);
  CHECK(rank::take_purpose(w).phase == 0);
  rank::visit_module(w, id(memory, "layer"), id(memory, "forward"), 0, 0);
  rank::begin_step(w, 3, 0);
  CHECK(memory.last_visit().phase == 0);
  CHECK(rank::take_purpose(w).module == 0);
  rank::push_phase(w, id(memory, "forward"), 0);
  rank::visit_module(w, id(memory, "layer"), id(memory, "forward"), 1, 0);
  rank::push_phase(w, id(memory, "gather"), 0);
  CHECK(memory.text(rank::take_purpose(w).module) == "layer");
  rank::pop_phase(w);
  rank::pop_phase(w);
  rank::exit_module(w);
}

TEST_CASE("nesting beyond the limit is counted") {
  FlightMemory memory;
  const flight::Writer& w = memory.writer;
  for (unsigned i = 0; i < rank::kDepth; ++i) rank::push_phase(w, id(memory, "inside"), 0);
  rank::push_phase(w, id(memory, "too deep"), 0);
  CHECK(rank::take_purpose(w).phase == 0);
  rank::pop_phase(w);
  CHECK(memory.text(rank::take_purpose(w).phase) == "inside");
  for (unsigned i = 0; i < rank::kDepth; ++i) rank::pop_phase(w);
  CHECK(rank::take_purpose(w).phase == 0);
}

TEST_CASE("a visit is the current module until the next one or its end") {
  FlightMemory memory;
  const flight::Writer& w = memory.writer;
  rank::visit_module(w, id(memory, "a"), id(memory, "forward"), 1, 9);
  CHECK(memory.last_visit().kind == VisitKind::kModuleEnter);
  CHECK(memory.last_visit().training == 1);
  CHECK(memory.last_visit().site == 9);
  CHECK(memory.text(rank::take_purpose(w).module) == "a");
  CHECK(memory.text(rank::take_purpose(w).phase) == "forward");
  rank::visit_module(w, id(memory, "b"), id(memory, "backward"), 0, 0);
  CHECK(memory.text(rank::take_purpose(w).module) == "b");
  CHECK(memory.text(rank::take_purpose(w).phase) == "backward");
  rank::exit_module(w);
  CHECK(memory.text(memory.last_visit().module) == "b");
  CHECK(memory.text(memory.last_visit().phase) == "backward");
  CHECK(rank::take_purpose(w).module == 0);
}

TEST_CASE("a gather's parameters go to one call") {
  FlightMemory memory;
  const flight::Writer& w = memory.writer;
  rank::announce_gather(w, 77, id(memory, "1 2"), 0);
  CHECK(memory.last_visit().params == 77);
  CHECK(memory.text(memory.last_visit().detail) == "1 2");
  CHECK(rank::look_purpose(w).params == 77);
  CHECK(rank::take_purpose(w).params == 77);
  CHECK(rank::take_purpose(w).params == 0);
}

TEST_CASE("a thread without a phase takes that of its visit, else the process's") {
  FlightMemory memory;
  const flight::Writer& w = memory.writer;
  rank::push_phase(w, id(memory, "backward"), 0);  // by the main thread
  std::thread([&] {
    CHECK(memory.text(rank::take_purpose(w).phase) == "backward");
    rank::visit_module(w, id(memory, "layer"), id(memory, "recompute"), 1, 0);
    CHECK(memory.text(rank::take_purpose(w).phase) == "recompute");
    CHECK(memory.text(rank::take_purpose(w).module) == "layer");
    rank::exit_module(w);
    CHECK(memory.text(rank::take_purpose(w).phase) == "backward");
    rank::push_phase(w, id(memory, "own"), 0);
    CHECK(memory.text(rank::take_purpose(w).phase) == "own");
  }).join();
  CHECK(memory.text(rank::take_purpose(w).phase) == "backward");
  std::thread([&] { CHECK(memory.text(rank::take_purpose(w).phase) == "backward"); }).join();
  rank::pop_phase(w);
  std::thread([&] { CHECK(rank::take_purpose(w).phase == 0); }).join();

  SECTION("a thread that makes steps leads, too") {
    std::thread([&] {
      rank::begin_step(w, 1, 0);
      rank::push_phase(w, id(memory, "optimizer"), 0);
    }).join();
    CHECK(memory.text(rank::take_purpose(w).phase) == "optimizer");
  }
}

TEST_CASE("threads have entries of their own") {
  FlightMemory memory;
  const flight::Writer& w = memory.writer;
  std::uint32_t own = rank::thread_index(w, flight::kThreadCalls);
  CHECK(rank::thread_index(w, flight::kThreadCalls) == own);
  rank::push_phase(w, id(memory, "x"), 0);
  CHECK(memory.last_visit().thread == own);
  CHECK(w.thread_entry(own).flags.load() == (flight::kThreadCalls | flight::kThreadVisits));
  CHECK(w.thread_entry(own).last_ns.load() != 0);
  std::uint32_t other = own;
  std::thread([&] { other = rank::thread_index(w, flight::kThreadOwn); }).join();
  CHECK(other != own);
  CHECK(w.thread_entry(other).flags.load() == flight::kThreadOwn);
  rank::pop_phase(w);
}

TEST_CASE("an exception is recorded with step, phase and module") {
  FlightMemory memory;
  const flight::Writer& w = memory.writer;
  rank::begin_step(w, 8, 0);
  rank::push_phase(w, id(memory, "forward"), 0);
  rank::enter_module(w, id(memory, "layer"), 0);
  rank::record_exception(w, id(memory, "ValueError"), id(memory, "bad"), 3);
  const auto& e = *memory.section<flight::ExceptionRecord>(flight::Section::kExceptions);
  CHECK(e.stamp.load() == flight::complete_stamp(0));
  CHECK(e.step == 8);
  CHECK(memory.text(e.type) == "ValueError");
  CHECK(memory.text(e.message) == "bad");
  CHECK(memory.text(e.phase) == "forward");
  CHECK(memory.text(e.module) == "layer");
  CHECK(e.site == 3);
  rank::exit_module(w);
  rank::pop_phase(w);
}

TEST_CASE("names of an earlier waking mean nothing in the next one") {
  {
    FlightMemory memory;
    rank::push_phase(memory.writer, id(memory, "of the parent"), 0);
    rank::visit_module(memory.writer, id(memory, "layer"), id(memory, "forward"), 1, 0);
  }
  FlightMemory memory;
  id(memory, "another");
  rank::Purpose purpose = rank::take_purpose(memory.writer);
  CHECK(purpose.phase == 0);
  CHECK(purpose.module == 0);
  CHECK(memory.visits() == 0);
  rank::pop_phase(memory.writer);
}
