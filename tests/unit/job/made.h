// Jobs made from the readable form of records, for tests of what is built on them.
#pragma once

#include <memory>
#include <string>

#include "catch.h"
#include "core/job/job.h"
#include "core/job/parse.h"

namespace dshang::job {

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kStartNs = 1000 * kSecondNs;

// Now is `seconds` behind the start.
inline std::unique_ptr<Job> made(const std::string& text, double seconds = 1) {
  auto job = std::make_unique<Job>();
  Parsed parsed = parse(text, job->names);
  REQUIRE(parsed.error == "");
  for (RankRecords& records : parsed.ranks) {
    job->processes.push_back(std::make_unique<Process>());
    job->processes.back()->records = std::move(records);
  }
  job->journal.start_ns = kStartNs;
  job->journal.now_ns = kStartNs + static_cast<std::uint64_t>(seconds * 1e9);
  job->params.stall_after = 10;
  return job;
}

inline std::string rank(int rank, int world, const std::string& body) {
  return "rank " + std::to_string(rank) + " pid " + std::to_string(100 + rank) + " world " + std::to_string(world) +
         "\ncomm world\n" + body + "\n";
}

inline std::string repeat(int times, const std::string& text) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace dshang::job
