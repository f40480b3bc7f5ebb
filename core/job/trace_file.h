// A trace of Perfetto, packet by packet: tracks, slices, instants and counters.
//
// Numbers of fields are those of perfetto/protos/trace (schema of the package `perfetto` 0.59.1).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/job/protobuf.h"

namespace dshang::job {

using TrackId = std::uint64_t;

// Arguments of an event, as the UI lists them.
class TraceArguments;

class TraceFile {
 public:
  explicit TraceFile(std::ostream& out) : out_(out) {}

  // What the UI shows as a process; `number` stands for a pid, is greater than 0 and another for each.
  TrackId process(std::int32_t number, const std::string& name);
  // Tracks of one name and parent are drawn as one, so that slices that overlap can go to several of them.
  TrackId track(TrackId parent, const std::string& name);
  TrackId counter_of_bytes(TrackId parent, const std::string& name);

  // Slices of a track nest: an end closes the one that began last.  At equal times the order of calls counts.
  void begin(TrackId track, std::uint64_t ns, std::string_view name, const TraceArguments& arguments);
  void end(TrackId track, std::uint64_t ns);
  void instant(TrackId track, std::uint64_t ns, std::string_view name, const TraceArguments& arguments);
  void count(TrackId track, std::uint64_t ns, std::uint64_t value);

 private:
  friend class TraceArguments;
  // A text is sent once, and named by its number from then on.
  class Interned {
   public:
    std::uint64_t number_of(std::string_view text, std::uint32_t field, std::uint32_t text_field,
                            Message& news);

   private:
    std::unordered_map<std::string, std::uint64_t> numbers_;
  };

  void event(TrackId track, std::uint64_t ns, Message& event, std::string_view name,
             const TraceArguments& arguments);
  void write(Message& packet);
  TrackId describe(TrackId parent, const std::string& name, std::uint32_t field, const Message& kind);

  std::ostream& out_;
  TrackId last_track_ = 0;
  bool has_begun_ = false;
  Interned names_, argument_names_, argument_texts_;
};

class TraceArguments {
 public:
  // An empty text is left out.
  TraceArguments& add(std::string_view name, std::string_view text);
  TraceArguments& add(std::string_view name, std::int64_t number);

 private:
  friend class TraceFile;
  struct One {
    std::string name;
    std::string text;
    std::int64_t number;
    bool is_text;
  };
  std::vector<One> all_;
};

}  // namespace dshang::job
