#include "explain/scan.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstring>

#include "core/job/printable.h"

namespace dshang::explain {
namespace {

constexpr std::size_t kLongestRest = 1 << 20;           // of a line that does not end
constexpr std::size_t kKept = 512;                      // of it, so that no word is cut
constexpr std::size_t kBefore = 1024, kBehind = 16384;  // of a longer line: around what was found
constexpr std::size_t kLongestText = 300;
constexpr std::uint64_t kOneFailure = 100;  // lines in which one failure is told
constexpr std::size_t kMostSpeakers = 20000;
constexpr int kMostRanks = 1 << 20;

bool ends_line(char c) { return c == '\n' || c == '\r'; }

std::size_t line_begin(std::string_view text, std::size_t from, std::size_t at) {
  while (at > from && !ends_line(text[at - 1])) --at;
  return at;
}

std::size_t line_end(std::string_view text, std::size_t at) {
  std::size_t end = std::min(text.size(), at + kBehind);
  for (char c : {'\n', '\r'}) {
    if (const void* found = std::memchr(text.data() + at, c, end - at))
      end = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
  }
  return end;
}

}  // namespace

Scan::Scan(const Catalogue& catalogue, Observed* observed, Speaker speaker)
    : catalogue_(catalogue), observed_(observed), speaker_(std::move(speaker)) {}

void Scan::feed(std::string_view piece) {
  file().bytes += piece.size();
  std::size_t end = piece.find_last_of("\n\r");
  if (end == std::string_view::npos) {
    rest_ += piece;
    if (rest_.size() < kLongestRest) return;
    look_at(rest_);
    rest_.erase(0, rest_.size() - kKept);
    return;
  }
  ++end;
  // Only the line that was cut is copied.
  std::size_t first = rest_.empty() ? 0 : piece.find_first_of("\n\r") + 1;
  if (first) {
    rest_ += piece.substr(0, first);
    look_at(rest_);
  }
  look_at(piece.substr(first, end - first));
  rest_ = piece.substr(end);
}

void Scan::end() {
  if (!rest_.empty()) {
    look_at(rest_);
    ++file().lines;
  }
  rest_.clear();
  observed_->traces.end();
}

void Scan::look_at(std::string_view text) {
  counted_ = text.data();
  for (std::size_t at = 0; at < text.size();) {
    if (observed_->traces.open()) {
      std::size_t end = line_end(text, at);
      look_at_line(text.substr(at, end - at), text.substr(0, at), true);
      at = end + 1;
      continue;
    }
    std::size_t hit = std::string_view::npos;
    catalogue_.literals().search(text.substr(at), [&](std::size_t offset, std::size_t) {
      hit = at + offset;
      return false;
    });
    if (hit == std::string_view::npos) break;
    std::size_t begin = line_begin(text, hit - at > kBefore ? hit - kBefore : at, hit),
                end = line_end(text, hit);
    bool whole = begin == 0 || ends_line(text[begin - 1]);
    look_at_line(text.substr(begin, end - begin), whole ? text.substr(0, begin) : std::string_view(), whole);
    at = std::max(end, hit + 1);
  }
  count_lines(text.data() + text.size());
  keep_last_line(text);
}

void Scan::count_lines(const char* to) {
  while (counted_ < to) {
    const void* found = std::memchr(counted_, '\n', static_cast<std::size_t>(to - counted_));
    if (!found) break;
    ++file().lines;
    counted_ = static_cast<const char*>(found) + 1;
  }
  counted_ = std::max(counted_, to);
}

void Scan::keep_last_line(std::string_view text) {
  std::size_t end = text.find_last_not_of("\n\r \t");
  if (end == std::string_view::npos) return;
  std::size_t begin = line_begin(text, end > kLongestText ? end - kLongestText : 0, end);
  auto behind = std::count(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), '\n');
  std::uint64_t line = file().lines - static_cast<std::uint64_t>(behind) + 1;
  file().last_line = text.substr(begin, end + 1 - begin);
  file().last_place = {static_cast<std::uint32_t>(observed_->files.size() - 1), line};
}

std::string Scan::line_above(const Line& line) const {
  if (!before_.data()) return "";
  std::size_t end = before_.find_last_not_of("\n\r");
  std::string_view above = file().last_line;  // of the piece before
  if (end != std::string_view::npos) {
    std::size_t begin = line_begin(before_, end > kLongestText ? end - kLongestText : 0, end);
    above = before_.substr(begin, end + 1 - begin);
  }
  Speaker who = speaker_;
  std::string colourless;
  above = without_prefixes(without_colours(above, &colourless), &who);
  bool same = who.rank == line.who.rank && who.local == line.who.local;
  return same ? job::printable(above) : "";
}

void Scan::look_at_line(std::string_view raw, std::string_view before, bool whole) {
  before_ = before;
  count_lines(raw.data());
  Line line{{static_cast<std::uint32_t>(observed_->files.size() - 1), file().lines + 1}, speaker_, {}};
  line.text = without_colours(raw, &colourless_);
  if (whole) line.text = without_prefixes(line.text, &line.who);
  if (line.who.rank > kMostRanks) line.who.rank = -1;
  if (line.who.rank >= 0 && !line.who.local) {
    // The rank says all.
    if (!line.who.node.empty()) observed_->node_of[line.who.rank] = line.who.node;
    line.who.node.clear();
  }
  if (line.who.rank >= 0 && observed_->speakers.size() < kMostSpeakers) observed_->speakers.insert(line.who);
  if (observed_->traces.open()) observed_->traces.take(line);
  used_.clear();
  catalogue_.literals().search(line.text, [&](std::size_t at, std::size_t word) {
    for (const Catalogue::Use& one : catalogue_.uses(word)) {
      // Of losses and the like the last of a line may be the one that counts.
      bool once = one.sense == Sense::kEntry || one.sense == Sense::kNccl || one.sense == Sense::kTraceback;
      if (once && std::count(used_.begin(), used_.end(), &one)) continue;
      if (once) used_.push_back(&one);
      use(one, line, at);
    }
    return true;
  });
}

void Scan::use(const Catalogue::Use& use, const Line& line, std::size_t at) {
  Observed& seen = *observed_;
  switch (use.sense) {
    case Sense::kEntry:
      if (use.regex && !matches(*use.regex, line.text)) return;
      if (use.frame && !matches(*use.frame, seen.traces.frames_above(line))) return;
      seen.traces.mark_known(line);
      return sight(seen.seen[use.entry->id], line, use, at);
    case Sense::kTraceback:
      if (!seen.traces.open()) seen.traces.take(line);
      return;
    case Sense::kLoss:
      return seen.numbers.take_loss(line, at);
    case Sense::kGradNorm:
      return seen.numbers.take_grad_norm(line, at);
    case Sense::kOverflow:
      return seen.numbers.take_overflow(line, at);
    case Sense::kStep:
      return seen.numbers.take_step(line, at);
    case Sense::kBar:
      return seen.numbers.take_bar(line, at);
    case Sense::kNccl:
      return seen.nccl.take(line);
    case Sense::kTimeout:
      seen.traces.mark_known(line);
      return seen.watchdog.take_timeout(line, at);
    case Sense::kTimeoutGroup:
      return seen.watchdog.take_group(line, at);
    case Sense::kOutOfMemory:
      return sight_out_of_memory(line, use, at);
    case Sense::kWorldSize:
      return take_world_size(line, at);
    case Sense::kFailedRank:
      return take_failed_rank(line, at);
    case Sense::kRankFailed:
      if (!matches(*use.regex, line.text)) return;
      if (use.frame && !matches(*use.frame, seen.traces.frames_above(line))) return;
      return sight(seen.rank_failed, line, use, at);
    case Sense::kOthersEnded:
      seen.others_ended = true;
      return;
    case Sense::kConfig:
      seen.config_printed = true;
      return;
    case Sense::kConfigNvme:
      seen.config_has_nvme = true;
      return;
    case Sense::kMuon:
      seen.muon = true;
      return;
    case Sense::kSpeaker:
      return;
  }
}

void Scan::sight(Sighting& sighting, const Line& line, const Catalogue::Use& use, std::size_t at) {
  // A traceback shows the line of source that raises, and then what it raised.
  constexpr std::string_view kSource = "    ";
  bool first = !sighting.count, again = !first && sighting.last == line.place;  // again: by another pattern
  bool source = sighting.text.starts_with(kSource) && !line.text.starts_with(kSource);
  bool telling = !first && use.pattern < sighting.pattern && !line.text.starts_with(kSource) &&
                 line.place.line - sighting.first.line <= kOneFailure;
  if (first || source) {
    sighting.first = line.place;
    sighting.progress = observed_->numbers.progress();
  }
  if (first || source || telling) {
    sighting.text = quote(use, line, at);
    sighting.pattern = use.pattern;
  }
  sighting.count += !again;
  sighting.last = line.place;
  if (sighting.speakers.size() < kMostSpeakers) sighting.speakers.insert(line.who);
}

// The line's beginning, or what was found where that stands far behind.
std::string Scan::quote(const Catalogue::Use& use, const Line& line, std::size_t at) const {
  constexpr std::size_t kFar = 200;
  bool found = use.entry || use.sense == Sense::kOutOfMemory || use.sense == Sense::kRankFailed;
  if (found && at > kFar) return "… " + job::printable(line.text.substr(at, kLongestText));
  std::string text = job::printable(line.text.substr(0, kLongestText));
  std::string above = use.entry && use.entry->needs_line_above ? line_above(line) : "";
  return above.empty() ? text : above + ": " + text.substr(text.find_first_not_of(' '));
}

void Scan::sight_out_of_memory(const Line& line, const Catalogue::Use& use, std::size_t at) {
  static const re2::RE2 kSaves("_zero3_consolidated_16bit_state_dict|save_16bit_model|save_checkpoint");
  Observed& seen = *observed_;
  seen.traces.mark_known(line);
  bool saves = matches(kSaves, seen.traces.frames_above(line));
  auto& all = saves ? seen.out_of_memory_in_save : seen.out_of_memory;
  if (all.size() < kMostSpeakers) sight(all[line.who], line, use, at);
}

void Scan::take_world_size(const Line& line, std::size_t at) {
  constexpr std::size_t kWord = 10, kMostBetween = 5;
  std::size_t digits = at + kWord;
  // "world size 4", but not the "... * world_size 32 != 4 * 2 * 8" of an error.
  bool formula = line.text[at + 5] == '_' && line.text.substr(digits).starts_with(" ");
  if (formula) return;
  for (std::size_t end = digits + kMostBetween; digits < line.text.size() && digits < end; ++digits) {
    if (std::string_view("'\" :=").find(line.text[digits]) == std::string_view::npos) break;
  }
  long size = read_number(line.text, &digits);
  if (size > 0 && size <= kMostRanks)
    observed_->world_size = std::max(observed_->world_size, static_cast<int>(size));
}

// "  rank      : 2 (local_rank: 2)" of torchrun's list.
void Scan::take_failed_rank(const Line& line, std::size_t at) {
  std::string_view head = line.text.substr(0, at);
  std::size_t word = head.find_first_not_of(' '), colon = head.find(" : ");
  if (word == std::string_view::npos || colon == std::string_view::npos ||
      !head.substr(word).starts_with("rank "))
    return;
  std::size_t digits = colon + 3;
  long rank = read_number(head, &digits);
  if (rank >= 0 && rank < kMostRanks && digits == head.size())
    observed_->least_ranks = std::max(observed_->least_ranks, static_cast<int>(rank) + 1);
}

}  // namespace dshang::explain
