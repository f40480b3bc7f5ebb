// Any bytes taken for a Flight Recorder dump: they are refused with a line, or become records that keep the
// promises of load.h and can be written as a dump again, which says the same.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "core/job/dump.h"
#include "core/job/parse.h"
#include "core/job/recorder_export.h"
#include "core/job/recorder_import.h"
#include "tests/fuzz/seeds.h"

using namespace dshang;

namespace {

[[noreturn]] void fail(const char* what, const std::string& more) {
  std::fprintf(stderr, "fuzz_recorder: %s\n%s\n", what, more.c_str());
  std::abort();
}

constexpr const char* kJob = R"(
rank 0 pid 100 world 2
comm world
comm pair size=2
call all_gather 4096 bf16 site="model.py:10 forward | train.py:20 main"
call reduce_scatter 4096 bf16 avg
call send 8 f32 peer=1 comm=pair group=3
call recv 8 f32 peer=1 comm=pair group=3
call all_reduce 1 f32 sum site="train.py:24 main" queued
rank 1 pid 101 world 2
comm world
)";

constexpr const char* kJson = R"({"comm_lib_version": "2.27", "version": "2.10",
"pg_config": {"0": {"desc": "default_pg", "name": "0", "ranks": "[0, 1]"}},
"pg_status": {"0": {"last_completed_collective": "1", "last_enqueued_collective": "2", "last_started_collective": "-1"}},
"entries": [{"record_id": 0, "pg_id": 0, "process_group": ["0", "default_pg"], "thread_id": "1", "thread_name": "pt_autograd_0",
"collective_seq_id": 1, "p2p_seq_id": 0, "op_id": 1, "profiling_name": "nccl:_all_gather_base", "time_created_ns": 1000,
"duration_ms": 0.5, "input_sizes": [[4, 2], []], "output_sizes": [[8, 2]], "input_dtypes": ["Float", "Float"],
"output_dtypes": ["Float"], "state": "completed", "time_discovered_started_ns": 1500, "time_discovered_completed_ns": 2000,
"retired": true, "timeout_ms": 600000, "is_p2p": false},
{"record_id": 1, "pg_id": 0, "process_group": ["0", "default_pg"], "profiling_name": "nccl:send 0->1", "p2p_seq_id": 1,
"collective_seq_id": 1, "state": "scheduled", "is_p2p": true, "time_created_ns": 3000, "input_sizes": [[7]]},
{"record_id": 2, "process_group": ["0", "default_pg"], "profiling_name": "nccl:coalesced", "p2p_seq_id": 1,
"collective_seq_id": 1, "state": "scheduled", "is_p2p": true, "time_created_ns": 3000, "input_sizes": []}]})";

// Opcodes that torch does not write and Python does.
const char kPython[] =
    "\x80\x04\x95\x40\0\0\0\0\0\0\0}\x94(\x8c\x07version\x94\x8c\x03"
    "2.9\x94\x8c\tpg_config\x94}\x94"
    "h\x01h\x02s\x8c\x07"
    "entries\x94]\x94}\x94\x8c\x05state\x94\x85\x94s)G\x3f\xf0\0\0\0\0\0\0N\x87\x94"
    "au.";

void check(const job::RankRecords& records) {
  for (std::uint64_t n = records.calls.first(); n < records.calls.end(); ++n) {
    const job::Call& call = records.calls.at(n);
    if (call.op >= records.ops.size() || call.comm >= records.comms.size()) fail("a call points nowhere", "");
    if (call.thread >= records.threads.size()) fail("a call is of no thread", "");
  }
}

std::unique_ptr<job::Job> import(std::string_view bytes, std::vector<std::string>* remarks) {
  job::RecorderImport import;
  for (job::Rank rank : {0, 1}) import.add(rank, job::read_recorder_dump(bytes));
  return import.finish(0, remarks);
}

// Written again and read again it is as many calls.
void check_again(const job::Job& job) {
  job::JobView view = job::make_view(job);
  job::RecorderExport dumps(view);
  for (const job::RankView& rank : view.ranks) {
    std::string bytes = dumps.dump_of(rank);
    try {
      job::RecorderDump again = job::read_recorder_dump(bytes);
      if (again.entries.size() > 2 * rank.records().calls.size()) fail("entries came from nowhere", bytes);
    } catch (const std::runtime_error& error) {
      fail("what was written cannot be read", error.what());
    }
  }
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  job::Job job;
  job::Parsed parsed = job::parse(kJob, job.names);
  if (!parsed.error.empty()) fail("the seed cannot be parsed", parsed.error);
  for (job::RankRecords& records : parsed.ranks) {
    job.processes.push_back(std::make_unique<job::Process>());
    job.processes.back()->records = std::move(records);
  }
  job::JobView view = job::make_view(job);
  job::RecorderExport dumps(view);
  return {dumps.dump_of(view.ranks[0]), dumps.dump_of(view.ranks[1]), kJson, {kPython, sizeof kPython - 1}};
}

std::vector<std::string> fuzz_words() {
  return {"(",
          "]",
          "}",
          "u",
          "e",
          "s",
          "a",
          "t",
          ")",
          "h\x01",
          "0",
          "N",
          "\x94",
          "q",
          std::string(4, '\xff'),
          "cos\nsystem\n",
          "R",
          "\x8a\xff",
          "coalesced",
          "nccl:send 0->1",
          "[[]]",
          "{\"",
          "null",
          "-1",
          "1e999"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> remarks;
  try {
    std::unique_ptr<job::Job> job = import(bytes, &remarks);
    for (const auto& process : job->processes) {
      check(process->records);
      job::dump(process->records, job->names);
    }
    check_again(*job);
  } catch (const std::runtime_error& error) {
    std::string line = error.what();
    if (line.empty() || line.find('\n') != line.npos) fail("an error of no line or several", line);
  }
  return 0;
}
