#include "core/job/trace_file.h"

#include <ostream>

namespace dshang::job {
namespace {

namespace trace {
constexpr std::uint32_t kPacket = 1;
}
namespace packet {
constexpr std::uint32_t kTimestamp = 8, kSequence = 10, kEvent = 11, kInterned = 12, kFlags = 13, kTrack = 60;
constexpr std::uint64_t kStateCleared = 1, kNeedsState = 2;
}  // namespace packet
namespace descriptor {
constexpr std::uint32_t kId = 1, kName = 2, kProcess = 3, kParent = 5, kCounter = 8;
constexpr std::uint32_t kPid = 1, kProcessName = 6;
constexpr std::uint32_t kUnit = 3;
constexpr std::uint64_t kBytes = 3;
}  // namespace descriptor
namespace event_field {
constexpr std::uint32_t kArgument = 4, kType = 9, kName = 10, kTrack = 11, kCounterValue = 30;
constexpr std::uint64_t kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4;
}  // namespace event_field
namespace argument {
constexpr std::uint32_t kName = 1, kNumber = 4, kText = 17;
}
namespace interned {
constexpr std::uint32_t kEventNames = 2, kArgumentNames = 3, kArgumentTexts = 29;
constexpr std::uint32_t kNumber = 1, kText = 2;
}  // namespace interned

}  // namespace

std::uint64_t TraceFile::Interned::number_of(std::string_view text, std::uint32_t field,
                                             std::uint32_t text_field, Message& news) {
  auto [at, is_new] = numbers_.try_emplace(std::string(text), numbers_.size() + 1);
  if (is_new) {
    Message entry;
    entry.number(interned::kNumber, at->second).text(text_field, text);
    news.message(field, entry);
  }
  return at->second;
}

void TraceFile::write(Message& packet) {
  packet.number(packet::kSequence, 1);
  packet.number(packet::kFlags, has_begun_ ? packet::kNeedsState : packet::kStateCleared);
  has_begun_ = true;
  Message whole;
  whole.message(trace::kPacket, packet);
  out_ << whole.bytes();
}

TrackId TraceFile::describe(TrackId parent, const std::string& name, std::uint32_t field,
                            const Message& kind) {
  Message track, packet;
  track.number(descriptor::kId, ++last_track_).text(descriptor::kName, name);
  if (parent) track.number(descriptor::kParent, parent);
  if (field) track.message(field, kind);
  packet.message(packet::kTrack, track);
  write(packet);
  return last_track_;
}

TrackId TraceFile::process(std::int32_t number, const std::string& name) {
  Message process;
  process.number(descriptor::kPid, static_cast<std::uint64_t>(number)).text(descriptor::kProcessName, name);
  return describe(0, name, descriptor::kProcess, process);
}

TrackId TraceFile::track(TrackId parent, const std::string& name) { return describe(parent, name, 0, {}); }

TrackId TraceFile::counter_of_bytes(TrackId parent, const std::string& name) {
  Message counter;
  counter.number(descriptor::kUnit, descriptor::kBytes);
  return describe(parent, name, descriptor::kCounter, counter);
}

void TraceFile::event(TrackId track, std::uint64_t ns, Message& event, std::string_view name,
                      const TraceArguments& arguments) {
  Message news, packet;
  event.number(event_field::kTrack, track);
  if (!name.empty()) {
    event.number(event_field::kName, names_.number_of(name, interned::kEventNames, interned::kText, news));
  }
  for (const TraceArguments::One& one : arguments.all_) {
    Message argument;
    argument.number(argument::kName,
                    argument_names_.number_of(one.name, interned::kArgumentNames, interned::kText, news));
    if (one.is_text) {
      argument.number(argument::kText,
                      argument_texts_.number_of(one.text, interned::kArgumentTexts, interned::kText, news));
    } else {
      argument.number(argument::kNumber, static_cast<std::uint64_t>(one.number));
    }
    event.message(event_field::kArgument, argument);
  }
  packet.number(packet::kTimestamp, ns);
  if (!news.empty()) packet.message(packet::kInterned, news);
  packet.message(packet::kEvent, event);
  write(packet);
}

void TraceFile::begin(TrackId track, std::uint64_t ns, std::string_view name,
                      const TraceArguments& arguments) {
  Message message;
  message.number(event_field::kType, event_field::kBegin);
  event(track, ns, message, name, arguments);
}

void TraceFile::end(TrackId track, std::uint64_t ns) {
  Message message;
  message.number(event_field::kType, event_field::kEnd);
  event(track, ns, message, "", {});
}

void TraceFile::instant(TrackId track, std::uint64_t ns, std::string_view name,
                        const TraceArguments& arguments) {
  Message message;
  message.number(event_field::kType, event_field::kInstant);
  event(track, ns, message, name, arguments);
}

void TraceFile::count(TrackId track, std::uint64_t ns, std::uint64_t value) {
  Message message;
  message.number(event_field::kType, event_field::kCounter).number(event_field::kCounterValue, value);
  event(track, ns, message, "", {});
}

TraceArguments& TraceArguments::add(std::string_view name, std::string_view text) {
  if (!text.empty()) all_.push_back({std::string(name), std::string(text), 0, true});
  return *this;
}

TraceArguments& TraceArguments::add(std::string_view name, std::int64_t number) {
  all_.push_back({std::string(name), {}, number, false});
  return *this;
}

}  // namespace dshang::job
