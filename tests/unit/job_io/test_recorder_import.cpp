// Flight Recorder dumps as a job: numbers, communicators, states, what is not known; and back again.
#include <sstream>

#include "catch.h"
#include "core/job/model.h"
#include "core/job/parse.h"
#include "core/job/recorder_export.h"
#include "core/job/recorder_import.h"

using namespace dshang;
using namespace dshang::job;

namespace {

constexpr const char* kWorld = R"("0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"})";

// One entry in the JSON form; times in nanoseconds.
struct Entry {
  int record = 0;
  std::string name = "nccl:all_reduce";
  int seq = 0, p2p = 0;
  bool done = false;
  std::string group = "0", more = {};
  std::string json() const {
    std::ostringstream out;
    bool is_p2p = p2p > 0;
    out << R"({"record_id": )" << record << R"(, "pg_id": )" << group << R"(, "process_group": [")" << group
        << R"(", "x"], "profiling_name": ")" << name << R"(", "collective_seq_id": )" << seq
        << R"(, "p2p_seq_id": )" << p2p << R"(, "is_p2p": )" << (is_p2p ? "true" : "false")
        << R"(, "state": ")" << (done ? "completed" : "scheduled") << R"(", "time_created_ns": )"
        << 1000 + 10 * record << R"(, "time_discovered_started_ns": 0,
           "time_discovered_completed_ns": )"
        << (done ? 1005 + 10 * record : 0) << R"(, "retired": )" << (done ? "true" : "false")
        << R"(, "input_sizes": [[4, 2]], "output_sizes": [[8, 2]],
           "input_dtypes": ["BFloat16"], "output_dtypes": ["BFloat16"], "thread_id": "7", "thread_name": "python")"
        << more << "}";
    return out.str();
  }
};

std::string dump_of(const std::vector<Entry>& entries, const std::string& status = "",
                    const std::string& groups = kWorld) {
  std::string text = R"({"version": "2.10", "pg_config": {)" + groups + "}";
  if (!status.empty()) text += R"(, "pg_status": {)" + status + "}";
  text += R"(, "entries": [)";
  for (std::size_t i = 0; i < entries.size(); ++i) text += (i ? ", " : "") + entries[i].json();
  return text + "]}";
}

std::string status_of(int pg, int enqueued) {
  return '"' + std::to_string(pg) + R"(": {"last_enqueued_collective": )" + std::to_string(enqueued) +
         R"(, "last_completed_collective": 0})";
}

struct Imported {
  std::unique_ptr<Job> job;
  JobView view;
  std::vector<std::string> remarks;
  bool says(const std::string& part) const {
    return std::any_of(remarks.begin(), remarks.end(),
                       [&](const auto& line) { return line.find(part) != line.npos; });
  }
};

Imported import(const std::vector<std::string>& dumps, std::uint64_t written_ns = 0) {
  RecorderImport import;
  for (std::size_t rank = 0; rank < dumps.size(); ++rank) {
    if (!dumps[rank].empty()) import.add(static_cast<Rank>(rank), read_recorder_dump(dumps[rank]));
  }
  Imported result;
  result.job = import.finish(written_ns, &result.remarks);
  result.view = make_view(*result.job);
  return result;
}

std::vector<std::uint64_t> numbers(const Imported& imported, std::size_t rank) {
  std::vector<std::uint64_t> all;
  const auto& calls = imported.view.ranks[rank].records().calls;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) all.push_back(calls.at(n).number);
  return all;
}

}  // namespace

TEST_CASE("a dump has communicators, calls and their states", "[recorder]") {
  Entry gather{0, "nccl:_all_gather_base", 1, 0, true};
  Entry scatter{1,
                "nccl:_reduce_scatter_base",
                2,
                0,
                false,
                "0",
                R"(, "frames": [{"name": "forward", "filename": "/p/model.py", "line": 7}])"};
  Imported imported = import({dump_of({gather, scatter}), dump_of({gather, scatter})});
  REQUIRE(imported.view.comms.size() == 1);
  CHECK(imported.view.comms[0].name == "world");
  CHECK(imported.view.world_size == 2);
  const RankRecords& records = imported.view.ranks[1].records();
  const Call &first = records.calls.at(0), &second = records.calls.at(1);
  CHECK(imported.view.op_name(imported.view.ranks[1], first) == "all_gather");
  CHECK(first.count == 8);
  CHECK(first.dtype == flight::DType::kBF16);
  CHECK(is_done(first));
  CHECK(first.done_ns == 1005);
  CHECK(imported.view.op_name(imported.view.ranks[1], second) == "reduce_scatter");
  CHECK(second.count == 16);
  CHECK(is_outstanding(second));
  CHECK(imported.job->names.place_text(imported.job->names.place_of(second.site)) == "p/model.py:7 forward");
  CHECK(imported.says("no steps, modules"));
  CHECK_FALSE(imported.says("no frames"));
  CHECK(imported.says("times of their files do not fit"));
}

TEST_CASE("the moment is that of the files where it fits", "[recorder]") {
  std::vector<std::string> dumps = {dump_of({{0, "nccl:all_reduce", 1}})};
  CHECK(import(dumps, 5'000'000'000).job->journal.now_ns == 5'000'000'000);
  CHECK_FALSE(import(dumps, 5'000'000'000).says("do not fit"));
  Imported copied = import(dumps, 1'000'000 * 1'000'000'000ull);
  CHECK(copied.says("do not fit"));
  CHECK(copied.job->journal.now_ns > copied.job->params.stall_after * 1e9);
}

TEST_CASE("a call that was given up has waited for its time-out", "[recorder]") {
  Entry entry{0, "nccl:all_reduce", 1, 0, false, "0", R"(, "timeout_ms": 180000, "retired": true)"};
  CHECK(import({dump_of({entry})}, 1010).job->journal.now_ns >= 180'000'000'000);
}

TEST_CASE("a rank without calls has made as many as its status says", "[recorder]") {
  Imported imported =
      import({dump_of({{90, "nccl:all_reduce", 42}}, status_of(0, 42)), dump_of({}, status_of(0, 41))});
  REQUIRE(imported.view.comms.size() == 1);
  REQUIRE(imported.view.comms[0].members.size() == 2);
  CHECK(imported.view.comms[0].members[1].last() == 41);
  CHECK(imported.says("rank 0: the dump has only calls that had not finished"));
  CHECK(imported.says("rank 0: the dump has no frames"));
}

TEST_CASE("without status nothing rests on a rank without calls", "[recorder]") {
  Imported imported = import({dump_of({{90, "nccl:all_reduce", 42}}), dump_of({})});
  REQUIRE(imported.view.comms.size() == 1);
  CHECK(imported.view.comms[0].members.size() == 1);
  CHECK_FALSE(imported.view.comms[0].complete());
}

TEST_CASE("a rank whose whole ring is there has made no more calls", "[recorder]") {
  std::string pair = std::string(kWorld) + R"(, "4": {"name": "4", "desc": "PAIR", "ranks": "[0, 1]"})";
  Imported imported = import({dump_of({{0, "nccl:all_reduce", 1, 0, false, "4"}}, "", pair),
                              dump_of({{0, "nccl:all_reduce", 1}}, "", pair)});
  REQUIRE(imported.view.comms.size() == 2);
  const CommView& comm = imported.view.comms[1];
  CHECK(comm.name == "PAIR (4)");
  REQUIRE(comm.members.size() == 2);
  CHECK(comm.members[0].last() == 1);
  CHECK(comm.members[1].last() == 0);
}

TEST_CASE("numbers are sequence ids, also where a ring was overwritten", "[recorder]") {
  Imported imported = import({dump_of({{7, "nccl:all_reduce", 100, 0, true}, {8, "nccl:all_reduce", 101}}),
                              dump_of({{9, "nccl:all_reduce", 101}})});
  CHECK(numbers(imported, 0) == std::vector<std::uint64_t>{100, 101});
  CHECK(numbers(imported, 1) == std::vector<std::uint64_t>{101});
  CHECK(imported.view.comms[0].members[0].first == 100);
  CHECK(imported.says("older calls were overwritten"));
}

TEST_CASE("calls of a coalesced group are counted one by one on every rank", "[recorder]") {
  auto group = [](int record, int seq, int calls) {
    std::vector<Entry> all;
    for (int i = 0; i < calls; ++i) all.push_back({record + i, "nccl:all_reduce", seq});
    all.push_back({record + calls, "nccl:coalesced", seq, 0, true});
    return all;
  };
  auto with = [](std::vector<Entry> a, std::vector<Entry> b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  // Rank 0 still has group 5, which rank 1 has lost; it ran ahead by the three calls of its group 6.
  std::vector<Entry> later = with(group(20, 6, 3), {{30, "nccl:broadcast", 7}});
  Imported imported = import({dump_of(with(group(10, 5, 2), later)), dump_of(later)});
  CHECK(numbers(imported, 0) == std::vector<std::uint64_t>{4, 5, 6, 7, 8, 9});
  CHECK(numbers(imported, 1) == std::vector<std::uint64_t>{6, 7, 8, 9});
  const auto& calls = imported.view.ranks[1].records().calls;
  CHECK(is_done(calls.at(0)));  // as the end of its group
  CHECK(calls.at(0).group == calls.at(2).group);
  CHECK_FALSE(is_done(calls.at(3)));
  CHECK(imported.says("counted one by one"));
}

TEST_CASE("the end of a group that stands alone is a call", "[recorder]") {
  Imported imported = import({dump_of({{0, "nccl:coalesced", 1}, {1, "nccl:all_reduce", 2}})});
  CHECK(numbers(imported, 0) == std::vector<std::uint64_t>{1, 2});
  CHECK(imported.view.op_name(imported.view.ranks[0], imported.view.ranks[0].records().calls.at(0)) ==
        "coalesced");
}

TEST_CASE("sends and receives are paired from the first that is outstanding", "[recorder]") {
  Imported imported = import({dump_of({{50, "nccl:send 0->1", 3, 11, true}, {51, "nccl:send 0->1", 3, 12}}),
                              dump_of({{60, "nccl:recv 1<-0", 3, 21}})});
  CHECK(numbers(imported, 0) == std::vector<std::uint64_t>{1, 2});
  CHECK(numbers(imported, 1) == std::vector<std::uint64_t>{2});
  CHECK(imported.view.ranks[1].records().calls.at(0).root_or_peer == 0);
  CHECK(imported.says("matched from the first that is outstanding"));
  // Their collectives so far are known from the entries.
  CHECK(imported.view.comms[0].members[0].last() == 3);
}

TEST_CASE("sends and receives are counted where nothing was overwritten", "[recorder]") {
  Imported imported = import({dump_of({{0, "nccl:send 0->1", 0, 1, true}, {1, "nccl:send 0->1", 0, 2}}),
                              dump_of({{0, "nccl:recv 1<-0", 0, 1}})});
  CHECK(numbers(imported, 0) == std::vector<std::uint64_t>{1, 2});
  CHECK(numbers(imported, 1) == std::vector<std::uint64_t>{1});
}

TEST_CASE("Gloo's entries are done when they are retired, and its first group has no name", "[recorder]") {
  std::string nameless = R"("": {"name": "", "desc": "", "ranks": "[0, 1]"})";
  Entry entry{0, "gloo:all_reduce", 1, 0, false, "0", R"(, "retired": true, "timeout_ms": 1000)"};
  Imported imported = import({dump_of({entry}, "", nameless)}, 2000);
  REQUIRE(imported.view.comms.size() == 1);
  CHECK(imported.view.comms[0].name == "world");
  CHECK(is_done(imported.view.ranks[0].records().calls.at(0)));
  CHECK(imported.job->journal.now_ns == 2000);
}

TEST_CASE("calls of groups that a dump does not describe are left out and said", "[recorder]") {
  Imported imported =
      import({dump_of({{0, "nccl:all_reduce", 1, 0, false, "9"}, {1, "nccl:all_reduce", 1}})});
  CHECK(numbers(imported, 0) == std::vector<std::uint64_t>{1});
  CHECK(imported.says("rank 0: 1 calls are of process groups"));
}

TEST_CASE("other versions and other JSON are refused with a line", "[recorder]") {
  auto error_of = [](const std::string& text) -> std::string {
    try {
      read_recorder_dump(text);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(error_of(R"({"version": "1.5", "pg_config": {}})") ==
        "a Flight Recorder dump of version \"1.5\"; versions 2.x are read");
  CHECK(error_of(R"({"entries": []})") == "it is no Flight Recorder dump: version or pg_config is missing");
  CHECK(error_of(R"({"version": "2.9", "pg_config": )").find("of the JSON: it is not well-formed") !=
        std::string::npos);
  CHECK(error_of(R"({"version": "2.9", "pg_config": {}, "entries": [3]})") == "entry 0 is none");
  CHECK(error_of(R"({"version": "2.9", "pg_config": {"0": {"ranks": [-4]}}})") == "pg_config: -4 is no rank");
}

TEST_CASE("a job that is written as dumps and read again has the same calls", "[recorder]") {
  const char* text = R"(
rank 0 pid 100 world 3
comm world
comm pair size=2
call all_gather 4096 bf16 site="/p/model.py:10 forward | /p/train.py:20 main"
call reduce_scatter 2048 bf16 avg
call all_reduce 1 f32 sum comm=pair
call send 8 f32 peer=1 comm=pair group=3 queued
call recv 16 f32 peer=1 comm=pair group=3 queued
call broadcast 5 i64 root=0 queued
rank 1 pid 101 world 3
comm world
comm pair size=2
call all_gather 4096 bf16
)";
  Job job;
  Parsed parsed = parse(text, job.names);
  REQUIRE(parsed.error == "");
  for (RankRecords& records : parsed.ranks) {
    job.processes.push_back(std::make_unique<Process>());
    job.processes.back()->records = std::move(records);
  }
  JobView view = make_view(job);
  RecorderExport dumps(view);
  Imported again = import({dumps.dump_of(view.ranks[0]), dumps.dump_of(view.ranks[1])});
  CHECK(dumps.remarks().empty());
  REQUIRE(again.view.comms.size() == 2);
  CHECK(again.view.world_size == 3);
  const auto &before = view.ranks[0].records().calls, &after = again.view.ranks[0].records().calls;
  REQUIRE(after.size() == before.size());
  for (std::uint64_t n = 0; n < before.size(); ++n) {
    INFO("call " << n);
    const Call &a = before.at(n), &b = after.at(n);
    CHECK(view.op_name(view.ranks[0], a) == again.view.op_name(again.view.ranks[0], b));
    CHECK(a.number == b.number);
    CHECK(a.count == b.count);
    CHECK(a.dtype == b.dtype);
    CHECK(view.ranks[0].records().comms[a.comm].size == again.view.ranks[0].records().comms[b.comm].size);
    CHECK(is_outstanding(a) == is_outstanding(b));
    bool has_peer = view.op_traits(view.ranks[0], a) & (flight::kOpSend | flight::kOpRecv);
    if (has_peer) CHECK(a.root_or_peer == b.root_or_peer);
    CHECK(job.names.place_text(job.names.place_of(a.site)) ==
          again.job->names.place_text(again.job->names.place_of(b.site)));
  }
  CHECK(after.at(3).group == after.at(4).group);
  CHECK(after.at(3).group != 0);
}
