// One Flight Recorder dump: what one rank's process wrote, decoded but not interpreted.
//
// The format is that of torch's FlightRecorderDetail.hpp, versions 2.x; fields that a version lacks keep the
// values below.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/flight/format.h"
#include "core/job/recorder_value.h"

namespace dshang::job {

inline constexpr std::uint32_t kNoText = UINT32_MAX;

struct RecorderEntry {
  std::int64_t record_id = -1;  // counted on the process
  std::int64_t pg_id = -1;      // of the process's own count of groups
  std::int64_t collective_seq = 0, p2p_seq = 0;
  std::int64_t timeout_ms = 0;
  std::uint64_t created_ns = 0, started_ns = 0, completed_ns = 0;  // CLOCK_REALTIME, 0 = not (seen)
  std::uint64_t input_count = 0, output_count = 0;                 // elements of all tensors
  std::uint32_t name = kNoText, group = kNoText, thread = kNoText,
                thread_name = kNoText;  // texts of the tree
  flight::DType input = flight::DType::kNone, output = flight::DType::kNone;
  bool is_p2p = false, completed = false, retired = false;
  RecorderValue frames;  // innermost first: dictionaries with name, filename, line
};

struct RecorderGroup {
  std::string name, description;
  std::vector<std::int32_t> ranks;  // global, by position
};

struct RecorderStatus {
  std::int64_t enqueued = -1, completed = -1;  // numbers of collectives, or of sends and receives
};

struct RecorderDump {
  RecorderTree tree;
  std::string version;
  std::vector<RecorderGroup> groups;                             // oldest first
  std::optional<std::map<std::int64_t, RecorderStatus>> status;  // by pg_id
  std::vector<RecorderEntry> entries;                            // oldest first
};

// Whether a file that begins with these bytes may be a dump.
bool looks_like_recorder_dump(std::string_view bytes);

// A pickle or JSON; `bytes` must outlive the dump.  Failure: throws std::runtime_error with one line.
RecorderDump read_recorder_dump(std::string_view bytes);

}  // namespace dshang::job
