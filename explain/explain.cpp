#include "explain/explain.h"

#include <algorithm>
#include <cstring>

#include "explain/hits.h"
#include "explain/scan.h"
#include "explain/words.h"

namespace dshang::explain {
namespace {

constexpr std::size_t kLongestQuote = 220;
constexpr std::size_t kMostNodes = 4;

std::string quoted(const std::string& line) {
  std::size_t begin = line.find_first_not_of(" \t"), end = line.find_last_not_of(" \t\n");
  if (begin == std::string::npos) return "";
  std::string text = line.substr(begin, end + 1 - begin);
  if (text.size() <= kLongestQuote) return text;
  std::size_t cut = kLongestQuote;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;  // not within a character
  return text.substr(0, cut) + " …";
}

Finding finding_of(const Entry& entry, const Hits::Hit& hit, const Observed& observed) {
  Finding finding{&entry,      hit.place, where_text(observed, hit.place, hit.speakers, hit.count),
                  hit.summary, {},        entry.role == Role::kConsequence && !hit.cause};
  if (finding.summary.empty()) finding.summary = entry.summary;
  std::string quote = quoted(hit.text);
  if (!quote.empty()) finding.summary += ": " + quote;
  if (!hit.fix.empty()) finding.fix.push_back(hit.fix);
  finding.fix.push_back(entry.fix);
  return finding;
}

bool hidden(const Finding& finding, const std::vector<Finding>& all) {
  return std::any_of(all.begin(), all.end(), [&](const Finding& other) {
    const auto& hides = other.entry->hides;
    return std::any_of(hides.begin(), hides.end(),
                       [&](const char* id) { return !std::strcmp(id, finding.entry->id); });
  });
}

int tier(const Finding& finding) {
  if (finding.entry->severity >= Severity::kSlow) return 2;
  return finding.consequence ? 1 : 0;
}

}  // namespace

std::string place_text(const Observed& observed, const Place& place) {
  const std::string name = place.file < observed.files.size() ? observed.files[place.file].name : "";
  return name + ":" + std::to_string(place.line);
}

std::string speakers_text(const Observed& observed, const std::set<Speaker>& speakers) {
  std::vector<int> ranks;
  std::map<std::string, std::vector<int>> local;
  std::set<std::string> nodes;
  for (const Speaker& who : speakers) {
    if (who.rank < 0) {
      if (!who.node.empty()) nodes.insert(who.node);
      continue;
    }
    if (who.local) {
      local[who.node].push_back(who.rank);
      continue;
    }
    ranks.push_back(who.rank);
    auto node = observed.node_of.find(who.rank);
    if (node != observed.node_of.end()) nodes.insert(node->second);
  }
  std::sort(ranks.begin(), ranks.end());
  std::string text = ranks.empty() ? "" : ranks_text(ranks);
  if (!nodes.empty() && nodes.size() <= kMostNodes)
    text += (text.empty() ? "" : " ") + ("(" + joined(nodes) + ")");
  if (nodes.size() > kMostNodes) text += " (" + counted(nodes.size(), "node") + ")";
  for (const auto& [node, of_node] : local)
    text +=
        (text.empty() ? "local " : ", local ") + ranks_text(of_node) + (node.empty() ? "" : " of " + node);
  return text;
}

std::string where_text(const Observed& observed, const Place& place, const std::set<Speaker>& speakers,
                       std::uint64_t lines) {
  std::string text = place_text(observed, place), who = speakers_text(observed, speakers);
  if (!who.empty()) text += ", " + who;
  if (lines > 1) text += ", " + counted(lines, "line");
  return text;
}

std::vector<Finding> explain(const Observed& observed) {
  std::vector<Finding> all, told;
  for (const Entry* entry : Catalogue::shared().entries()) {
    Hits hits;
    if (entry->judge) {
      entry->judge(*entry, observed, hits);
    } else if (const Sighting* sighting = observed.sighting(entry->id)) {
      hits.add(*sighting);
    }
    for (const Hits::Hit& hit : hits.all()) all.push_back(finding_of(*entry, hit, observed));
  }
  for (const Finding& finding : all) {
    if (!hidden(finding, all)) told.push_back(finding);
  }
  std::stable_sort(told.begin(), told.end(), [](const Finding& a, const Finding& b) {
    return tier(a) != tier(b) ? tier(a) < tier(b) : a.place < b.place;
  });
  return told;
}

const Sighting* unexplained_failure(const std::vector<Finding>& findings, const Observed& observed) {
  bool told = std::any_of(findings.begin(), findings.end(),
                          [](const Finding& finding) { return finding.entry->severity < Severity::kSlow; });
  if (told || !observed.rank_failed.count || observed.traces.first_unknown()) return nullptr;
  return &observed.rank_failed;
}

std::vector<Finding> explain_text(std::string_view text) {
  Observed observed;
  observed.files.push_back({"", 0, 0, {}, "", ""});
  Scan scan(Catalogue::shared(), &observed);
  scan.feed(text);
  scan.end();
  return explain(observed);
}

}  // namespace dshang::explain
