#include <algorithm>
#include <cstdio>

#include "core/job/model.h"
#include "core/job/report.h"

namespace dshang::job {
namespace {

constexpr std::size_t kLines = 25;
constexpr std::size_t kToldOneByOne = 16;  // suspects
constexpr double kToldApart = 2;           // seconds from its begin from which on both times are told
constexpr std::size_t kWidth = 400;        // longer lines are cut in the block, not in report.txt

std::string seconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", value);
  return text;
}

std::string capitals(const char* text) {
  std::string upper = text;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return upper;
}

std::string headline(const Finding& f) {
  std::string type = " [" + f.type + "] ";
  // No severity: whoever searches for HANG looks for what is not over.
  if (f.resolved) return "ended:" + type + "after " + seconds(*f.resolved - f.at) + ": " + f.summary;
  return capitals(text_of(f.severity)) + type + f.summary;
}

// Everything of a finding below its headline.
std::vector<std::string> details(const Finding& f) {
  std::vector<std::string> lines;
  if (f.resolved) return lines;
  for (const std::string& text : f.evidence) lines.push_back("  - " + text);
  for (std::size_t i = 0; i < f.fix.size(); ++i) lines.push_back((i == 0 ? "  fix: " : "       ") + f.fix[i]);
  if (!f.suspects.empty()) {
    std::string line = "  suspected: ";
    if (f.suspects.size() > kToldOneByOne) {
      line += ranks_text(f.suspects);
    } else {
      line += f.suspects.size() > 1 ? "ranks" : "rank";
      for (Rank rank : f.suspects) line += " " + std::to_string(rank);
    }
    lines.push_back(line);
  } else if (f.severity == Severity::kHang) {
    lines.push_back("  nobody is singled out: no side is in a clear majority");
  }
  std::string certainty =
      "  " + std::string(text_of(f.certainty)) + "; the explanation is " + text_of(f.class_certainty);
  std::string times = "; found at " + seconds(std::max(f.found, f.at)) + " of the job";
  if (f.found - f.at >= kToldApart) times += ", began at " + seconds(f.at);
  lines.push_back(certainty + times);
  return lines;
}

void add_whole(const Report& report, const Finding& f, std::vector<std::string>& lines) {
  lines.push_back(headline(f));
  if (f.consequence_of) lines.push_back("  follows from: " + report.findings[*f.consequence_of].type);
  for (std::string& line : details(f)) lines.push_back(std::move(line));
}

// The news whole; of what was told before and is not over, the headline.
std::vector<std::string> lines_of_news(const Report& report) {
  std::vector<std::string> lines;
  for (const Finding& f : report.findings) {
    if (f.is_news) add_whole(report, f, lines);
  }
  for (const Finding& f : report.findings) {
    if (!f.is_news && !f.resolved) lines.push_back("still: " + headline(f));
  }
  return lines;
}

}  // namespace

std::string text_of(const Report& report) {
  std::string text = "dshang: verdict " + verdict_of(report) + " as of " + seconds(report.as_of) + ", " +
                     std::to_string(report.world_size) + " ranks on " + std::to_string(report.nodes) +
                     (report.nodes == 1 ? " node" : " nodes") + ", started " + report.started + "\n";
  std::vector<std::string> lines;
  for (const Finding& f : report.findings) add_whole(report, f, lines);
  for (const std::string& line : lines) text += line + "\n";
  if (report.findings.empty()) text += "nothing was found\n";
  for (const std::string& line : report.not_checked) text += "not checked: " + line + "\n";
  return text;
}

std::string block_of(const Report& report, std::size_t limit) {
  std::vector<std::string> lines = lines_of_news(report);
  std::string tail = report.dir.empty() ? "" : "dshang: full report: " + report.dir + "/report.txt\n";
  std::string block;
  std::size_t count = 0;
  for (const std::string& text : lines) {
    std::string line = "dshang: " + text;
    if (line.size() > kWidth) line = line.substr(0, kWidth - 3) + "...";
    line += "\n";
    if (count + 2 > kLines || block.size() + line.size() + tail.size() > limit) break;
    block += line;
    ++count;
  }
  return block.empty() ? block : block + tail;
}

}  // namespace dshang::job
