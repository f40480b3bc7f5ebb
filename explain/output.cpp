#include "explain/output.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/job/printable.h"
#include "explain/words.h"

namespace dshang::explain {
namespace {

using Json = nlohmann::ordered_json;
using Lines = std::vector<std::string>;

constexpr std::size_t kWidth = 110;
constexpr std::size_t kMostFacts = 3;
constexpr std::size_t kFrames = 3;
constexpr std::size_t kMostUnknown = 20;  // in JSON
constexpr std::size_t kLongestPart = 330;

// Bytes are not columns: characters of several bytes count once.
std::size_t columns(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// `text` behind `label`, broken between words; further lines stand below its beginning.
void put(const std::string& label, const std::string& text, Lines* out) {
  std::string line = label;
  std::istringstream words(text);
  bool first = true;
  for (std::string word; words >> word;) {
    if (!first && columns(line) + 1 + columns(word) > kWidth) {
      out->push_back(line);
      line = std::string(columns(label), ' ');
      first = true;
    }
    line += (first ? "" : " ") + word;
    first = false;
  }
  out->push_back(line);
}

std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most) + " …";
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::vector<int> global_ranks(const Observed& observed) {
  std::vector<int> ranks;
  for (const Speaker& who : observed.speakers) {
    if (!who.local && who.rank >= 0) ranks.push_back(who.rank);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::string looked_at(const Observed& observed) {
  std::uint64_t bytes = 0, lines = 0;
  for (const LogFile& file : observed.files) {
    bytes += file.bytes;
    lines += file.lines;
  }
  std::string text =
      observed.files.size() == 1 ? observed.files[0].name : counted(observed.files.size(), "log");
  text += ", " + counted(lines, "line") + ", " + bytes_text(bytes);
  std::vector<int> ranks = global_ranks(observed);
  if (!ranks.empty()) text += ", lines of " + ranks_text(ranks);
  if (observed.world_size > 0) text += ", world size " + std::to_string(observed.world_size);
  return text;
}

std::vector<std::string> facts_of(const Observed& observed) {
  std::vector<std::string> facts;
  const Numbers& numbers = observed.numbers;
  if (numbers.progress()) {
    std::string text = "training reached ";
    text += numbers.losses() == numbers.progress() ? counted(numbers.losses(), "report")
                                                   : "step " + std::to_string(numbers.progress());
    if (numbers.last_loss()) text += ", last loss " + number_text(*numbers.last_loss());
    facts.push_back(text);
  }
  for (std::string& fact : observed.nccl.facts()) facts.push_back(std::move(fact));
  return facts;
}

std::vector<std::string> not_checked(const Observed& observed) {
  std::vector<std::string> notes;
  for (const LogFile& file : observed.files) {
    if (!file.trouble.empty())
      notes.push_back(file.name + " could not be read behind line " + std::to_string(file.lines) + ": " +
                      file.trouble);
    if (!file.no_text.empty()) notes.push_back(file.name + ": " + file.no_text);
    if (file.bytes == 0 && file.trouble.empty()) notes.push_back(file.name + " is empty");
  }
  return notes;
}

std::string where_of(const Traces::Unknown& unknown, const Observed& observed) {
  return where_text(observed, unknown.first->last, unknown.speakers, unknown.count);
}

std::string where_of(const Sighting& sighting, const Observed& observed) {
  return where_text(observed, sighting.first, sighting.speakers, sighting.count);
}

std::string summary_of(const Sighting& failure) {
  std::size_t begin = failure.text.find_first_not_of(" \t");
  return "a launcher says that a rank failed, and nothing in the log says why: " +
         (begin == std::string::npos ? "" : failure.text.substr(begin));
}

void put_finding(const Finding& finding, bool causes, Lines* out) {
  out->push_back("");
  std::string head = causes && finding.consequence ? "THEN" : upper(severity_words(finding.entry->severity));
  put(head + " [" + finding.entry->id + "] ", finding.summary, out);
  put("  where: ", finding.where, out);
  put("  why:   ", shortened(finding.entry->cause, kLongestPart), out);
  for (const std::string& fix : finding.fix) put("  fix:   ", shortened(fix, kLongestPart), out);
}

void put_failure(const Sighting& failure, const Observed& observed, Lines* out) {
  out->push_back("");
  put("UNKNOWN ERROR ", shortened(summary_of(failure), kLongestPart), out);
  put("  where: ", where_of(failure, observed), out);
  put("  fix:   ",
      "Read what the rank itself printed, above this line or in its own log or that of its node.", out);
}

void put_unknown(const Traces::Unknown& unknown, const Observed& observed, Lines* out) {
  const Trace& trace = *unknown.first;
  out->push_back("");
  put("UNKNOWN ERROR ",
      trace.error.empty() ? "a traceback without its end" : shortened(trace.error, kLongestPart), out);
  put("  where: ", where_of(unknown, observed), out);
  std::size_t first = trace.frames.size() > kFrames ? trace.frames.size() - kFrames : 0;
  for (std::size_t i = first; i < trace.frames.size(); ++i) put("         ", trace.frames[i], out);
}

std::string one_line(const Finding& finding) {
  std::string text =
      "also [" + std::string(finding.entry->id) + "] " + finding.entry->summary + " (" + finding.where + ")";
  return shortened(text, kWidth + 20);
}

std::string closing(const std::vector<Finding>& findings, bool unknown, bool failed) {
  std::string rank = ", and a rank that failed for an unknown reason";
  if (failed)
    return findings.empty() ? "no known error" + rank : counted(findings.size(), "known error") + rank;
  if (findings.empty() && !unknown) return "nothing that is known to be wrong";
  if (findings.empty()) return "no known error; the first traceback is shown above";
  return counted(findings.size(), "known error") + (unknown ? ", and a traceback that is not known" : "");
}

}  // namespace

std::string text_of(const std::vector<Finding>& findings, const Observed& observed) {
  Lines head, tail;
  put("dshang explain: ", looked_at(observed), &head);
  std::vector<Traces::Unknown> all = observed.traces.unknown(1);
  const Traces::Unknown* unknown = all.empty() ? nullptr : &all.front();
  const Sighting* failure = unexplained_failure(findings, observed);
  std::vector<std::string> facts = facts_of(observed);
  for (std::size_t i = 0; i < facts.size() && i < kMostFacts; ++i)
    put("seen: ", shortened(facts[i], 2 * kWidth), &tail);
  for (const std::string& note : not_checked(observed)) {
    if (tail.size() < 2 * kMostFacts) put("not checked: ", shortened(note, 2 * kWidth), &tail);
  }
  tail.push_back(closing(findings, unknown != nullptr, failure != nullptr));

  bool causes = unknown || (!findings.empty() && !findings.front().consequence);
  std::vector<Lines> parts;
  std::vector<std::string> shorter;
  auto tell_unknown = [&] {
    parts.emplace_back();
    put_unknown(*unknown, observed, &parts.back());
    shorter.push_back("also an unknown error: " + shortened(unknown->first->error, kWidth));
    unknown = nullptr;
  };
  if (failure) {
    parts.emplace_back();
    put_failure(*failure, observed, &parts.back());
    shorter.push_back("also " + shortened(summary_of(*failure), kWidth));
  }
  for (const Finding& finding : findings) {
    bool behind = finding.consequence || finding.entry->severity >= Severity::kSlow;
    if (unknown && (behind || unknown->first->last < finding.place)) tell_unknown();
    parts.emplace_back();
    put_finding(finding, causes, &parts.back());
    shorter.push_back(one_line(finding));
  }
  if (unknown) tell_unknown();

  // In full as far as they fit; each of the rest needs a line, or one for all.
  Lines out = head;
  std::size_t used = head.size() + tail.size() + 1;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::size_t left = parts.size() - i - 1;
    bool fits = used + parts[i].size() + std::min<std::size_t>(left, 3) <= kMostLines;
    if (i == 0 || fits) {
      std::size_t most = std::min(parts[i].size(), kMostLines - used - std::min<std::size_t>(left, 1));
      out.insert(out.end(), parts[i].begin(), parts[i].begin() + static_cast<std::ptrdiff_t>(most));
      used += most;
      continue;
    }
    if (used + (left ? 2 : 1) > kMostLines) {
      out.push_back("… and " + std::to_string(left + 1) + " more (--json)");
      break;
    }
    out.push_back(shorter[i]);
    ++used;
  }
  out.push_back("");
  out.insert(out.end(), tail.begin(), tail.end());
  std::string text;
  // Names of hosts and files, too, are what others wrote.
  for (const std::string& line : out) text += job::printable(line) + "\n";
  return text;
}

std::string json_of(const std::vector<Finding>& findings, const Observed& observed) {
  Json out = {{"schema", 1}, {"findings", Json::array()}, {"unknown", Json::array()}};
  for (const Finding& finding : findings) {
    out["findings"].push_back({{"id", finding.entry->id},
                               {"severity", report_severity(finding.entry->severity)},
                               {"where", finding.where},
                               {"summary", finding.summary},
                               {"fix", finding.fix}});
  }
  for (const Traces::Unknown& one : observed.traces.unknown(kMostUnknown))
    out["unknown"].push_back({{"where", where_of(one, observed)},
                              {"summary", one.first->error},
                              {"traceback", one.first->frames}});
  if (const Sighting* failure = unexplained_failure(findings, observed))
    out["unknown"].push_back({{"where", where_of(*failure, observed)},
                              {"summary", summary_of(*failure)},
                              {"traceback", Json::array()}});
  out["facts"] = facts_of(observed);
  out["not_checked"] = not_checked(observed);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string entries_text() {
  Lines lines;
  for (const Entry* entry : Catalogue::shared().entries()) {
    put(std::string(entry->id) + "  ", std::string(severity_words(entry->severity)) + ": " + entry->summary,
        &lines);
    for (const Pattern& pattern : entry->patterns)
      put("  prints:   ",
          std::string(pattern.regex) +
              (pattern.frame ? std::string("   below a frame of ") + pattern.frame : ""),
          &lines);
    put("  versions: ", entry->versions, &lines);
    put("  why:      ", entry->cause, &lines);
    put("  fix:      ", entry->fix, &lines);
    put("  see:      ", entry->reference, &lines);
    lines.push_back("");
  }
  lines.push_back(counted(Catalogue::shared().entries().size(), "known error"));
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string entries_json() {
  Json out = {{"schema", 1}, {"entries", Json::array()}};
  for (const Entry* entry : Catalogue::shared().entries()) {
    Json patterns = Json::array();
    for (const Pattern& pattern : entry->patterns) patterns.push_back(pattern.regex);
    out["entries"].push_back({{"id", entry->id},
                              {"severity", severity_words(entry->severity)},
                              {"summary", entry->summary},
                              {"patterns", patterns},
                              {"versions", entry->versions},
                              {"cause", entry->cause},
                              {"fix", entry->fix},
                              {"reference", entry->reference}});
  }
  return out.dump(2) + "\n";
}

}  // namespace dshang::explain
