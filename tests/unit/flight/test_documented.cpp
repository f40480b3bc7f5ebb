// docs/flight_format.md says what format.h says.
#include <cstddef>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "catch.h"
#include "core/flight/format.h"

#pragma GCC diagnostic ignored "-Winvalid-offsetof"

using namespace dshang::flight;

namespace {

using Offsets = std::map<std::string, std::size_t>;

std::string page() {
  std::ifstream file(DSHANG_SOURCE_DIR "/docs/flight_format.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The rows `| <number> | <field> |` below the heading `## <name> (<bytes> bytes)`.
Offsets documented(const std::string& name, std::size_t bytes) {
  std::istringstream lines(page());
  std::string line, heading = "## " + name + " (" + std::to_string(bytes) + " bytes)";
  bool inside = false;
  Offsets offsets;
  while (std::getline(lines, line)) {
    if (line.starts_with("## ")) inside = line == heading;
    if (!inside || line.size() < 3 || line[2] < '0' || line[2] > '9') continue;
    std::size_t second = line.find(" | "), third = line.find(" | ", second + 3);
    offsets[line.substr(second + 3, third - second - 3)] = std::stoul(line.substr(2));
  }
  return offsets;
}

}  // namespace

#define AT(field) \
  { #field, offsetof(Type, field) }

TEST_CASE("the documented header") {
  using Type = Header;
  CHECK(documented("Header", sizeof(Type)) == Offsets{AT(magic),
                                                      AT(version),
                                                      AT(header_bytes),
                                                      AT(total_bytes),
                                                      AT(pid),
                                                      AT(rank),
                                                      AT(local_rank),
                                                      AT(world_size),
                                                      AT(restart_count),
                                                      AT(provisional),
                                                      AT(pid_start_ticks),
                                                      AT(job),
                                                      AT(net_namespace),
                                                      AT(pid_namespace),
                                                      AT(start_ns),
                                                      AT(start_real_ns),
                                                      AT(host),
                                                      AT(sections),
                                                      AT(call_head),
                                                      AT(visit_head),
                                                      AT(memory_step_head),
                                                      AT(alloc_failure_head),
                                                      AT(fact_head),
                                                      AT(exception_head),
                                                      AT(stack_head),
                                                      AT(comm_count),
                                                      AT(arena_used),
                                                      AT(dropped_strings),
                                                      AT(dropped_sites),
                                                      AT(dropped_comms),
                                                      AT(dropped_threads),
                                                      AT(step),
                                                      AT(world_rank),
                                                      AT(python),
                                                      AT(poll_ns),
                                                      AT(poll_stuck_ns),
                                                      AT(graph_launches),
                                                      AT(async_error),
                                                      AT(memory),
                                                      AT(ending)});
}

TEST_CASE("the documented call record") {
  using Type = CallRecord;
  CHECK(documented("CallRecord", sizeof(Type)) ==
        Offsets{AT(stamp),      AT(number),  AT(count),         AT(stream), AT(enter_ns),     AT(return_ns),
                AT(started_ns), AT(done_ns), AT(visits_before), AT(params), AT(step),         AT(comm),
                AT(site),       AT(module),  AT(phase),         AT(group),  AT(root_or_peer), AT(thread),
                AT(op),         AT(dtype),   AT(reduce_op),     AT(flags),  AT(result)});
}

TEST_CASE("the documented visit record") {
  using Type = VisitRecord;
  CHECK(documented("VisitRecord", sizeof(Type)) ==
        Offsets{AT(stamp), AT(time_ns), AT(calls_before), AT(params), AT(step), AT(module), AT(phase),
                AT(site), AT(detail), AT(micro), AT(thread), AT(kind), AT(training)});
}

TEST_CASE("the documented communicator") {
  using Type = CommEntry;
  CHECK(documented("CommEntry", sizeof(Type)) ==
        Offsets{AT(state), AT(origin), AT(id), AT(nccl_hash), AT(handle), AT(parent), AT(rank), AT(size),
                AT(color), AT(ordinal), AT(device), AT(site), AT(begin_ns), AT(ready_ns), AT(end_ns),
                AT(free_before), AT(free_after), AT(calls)});
}

TEST_CASE("the documented sections, in their order") {
  const std::pair<std::string, std::size_t> sections[] = {{"OpInfo", sizeof(OpInfo)},
                                                          {"CallRecord", sizeof(CallRecord)},
                                                          {"VisitRecord", sizeof(VisitRecord)},
                                                          {"CommEntry", sizeof(CommEntry)},
                                                          {"StringEntry", sizeof(StringEntry)},
                                                          {"arena", 1},
                                                          {"SiteEntry", sizeof(SiteEntry)},
                                                          {"MemoryStep", sizeof(MemoryStep)},
                                                          {"AllocFailure", sizeof(AllocFailure)},
                                                          {"ThreadEntry", sizeof(ThreadEntry)},
                                                          {"Fact", sizeof(Fact)},
                                                          {"ExceptionRecord", sizeof(ExceptionRecord)},
                                                          {"StackRecord", sizeof(StackRecord)}};
  STATIC_REQUIRE(std::size(sections) == kSections);
  std::string text = page();
  std::size_t at = 0;
  for (const auto& [name, bytes] : sections) {
    INFO(name);
    at = text.find("\n| " + name + " | " + std::to_string(bytes) + " |", at);
    REQUIRE(at != text.npos);
  }
  CHECK(text.find("* Version " + std::to_string(kVersion) + ".") != text.npos);
  CHECK(text.find("64 × Frame") != text.npos);
  STATIC_REQUIRE(kSiteFrames == 64);
  CHECK(text.find("48 × Frame") != text.npos);
  STATIC_REQUIRE(kStackFrames == 48);
}
