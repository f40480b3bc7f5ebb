// What one Flight Recorder dump tells of one rank, before it is compared with the others'.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/job/finding.h"
#include "core/job/job.h"
#include "core/job/recorder_dump.h"

namespace dshang::job {

struct RecorderRank {
  // A call of Process::records.calls and the sequence id that the dump has for it.
  struct Numbered {
    std::uint64_t n, seq;
  };
  struct Group {
    std::string name, description;
    std::vector<Numbered> collectives;     // numbered on from the first one's sequence id
    bool coalesced = false;                // several of them share a sequence id
    bool p2p = false;                      // sends or receives are among its calls
    std::optional<std::int64_t> last_seq;  // newest collective_seq_id that an entry of it has
    std::optional<std::int64_t> pg_id;     // the process's own number of it, where that is known
  };
  using Direction =
      std::tuple<std::uint32_t, bool, std::int32_t>;  // communicator, sends, position of the peer

  std::unique_ptr<Process> process;
  std::vector<Group> groups;                                     // by communicator
  std::map<Direction, std::vector<std::uint64_t>> p2p;           // calls, oldest first
  std::optional<std::map<std::int64_t, RecorderStatus>> status;  // by pg_id
  std::string version;
  bool from_the_start = false;  // no entry was overwritten or left out
  bool only_active = false;     // nothing that has finished is in it
  bool has_frames = false, is_timed = false;
  std::size_t without_group = 0;  // entries of groups that the dump does not describe
  std::int64_t least_timeout_ms = 0;
  std::uint64_t oldest_ns = 0, newest_ns = 0;
};

RecorderRank rank_of_dump(Rank rank, const RecorderDump& dump, Names& names);

}  // namespace dshang::job
