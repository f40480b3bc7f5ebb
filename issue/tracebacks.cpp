#include "issue/tracebacks.h"

#include <algorithm>
#include <map>

namespace dshang::issue {
namespace {

constexpr std::string_view kHead = "Traceback (most recent call last):";
constexpr std::size_t kLongestLine = 4096;
constexpr int kMostLines = 150;
constexpr int kLinesOfMessage = 8;  // behind the exception's first line

struct Open {
  Traceback traceback;
  int number = 0;          // in order of begin
  std::size_t indent = 0;  // a traceback inside a warning or an exception group is indented as a whole
  int lines = 0, of_message = 0;
};

class Reader {
 public:
  explicit Reader(std::size_t most) : most_(most) {}

  void take(std::string line) {
    if (line.size() > kLongestLine) line = line.substr(0, kLongestLine) + " …";
    line = without_colours(line);
    std::size_t head = line.find(kHead);
    if (head != std::string::npos) return begin(line, head);
    for (auto at = open_.begin(); at != open_.end();) {
      const std::string& prefix = at->first;
      bool of_another = prefix.empty() && line.starts_with("[") && at->second.of_message == 0;
      bool belongs = line.starts_with(prefix) && !of_another;
      bool goes_on = !belongs || add(at->second, line.substr(prefix.size()));
      if (belongs && !goes_on) {
        close(at->second);
        at = open_.erase(at);
      } else {
        ++at;
      }
      if (belongs && !prefix.empty()) return;
    }
  }

  std::vector<Traceback> end(int* left_out) {
    for (auto& [prefix, open] : open_) close(open);
    *left_out = left_out_;
    std::sort(whole_.begin(), whole_.end(), [](const Open& a, const Open& b) { return a.number < b.number; });
    std::vector<Traceback> result;
    for (Open& one : whole_) result.push_back(std::move(one.traceback));
    return result;
  }

 private:
  void begin(const std::string& line, std::size_t head) {
    std::size_t indent = 0;
    while (indent < head && line[head - indent - 1] == ' ') ++indent;
    if (indent == 1) indent = 0;  // the blank behind "[rank1]:"
    std::string prefix = line.substr(0, head - indent);
    auto old = open_.find(prefix);
    if (old != open_.end()) {
      close(old->second);
      open_.erase(old);
    }
    Open open;
    open.number = ++begun_;
    open.indent = indent;
    open.traceback.first = prefix;
    open.traceback.text = std::string(kHead) + "\n";
    open_.emplace(prefix, std::move(open));
  }

  // False: the line does not belong to it any more.
  static bool add(Open& open, const std::string& line) {
    std::string text = line;
    std::size_t blanks = 0;
    while (blanks < open.indent && blanks < text.size() && text[blanks] == ' ') ++blanks;
    text.erase(0, blanks);
    bool frame = text.starts_with("  ") && open.of_message == 0;
    if (!frame && (text.empty() || ++open.of_message > kLinesOfMessage)) return false;
    if (++open.lines < kMostLines) open.traceback.text += text + "\n";
    return open.lines < kMostLines;
  }

  void close(Open& open) {
    auto same = std::find_if(whole_.begin(), whole_.end(),
                             [&](const Open& one) { return one.traceback.text == open.traceback.text; });
    if (same != whole_.end()) {
      ++same->traceback.times;
    } else if (whole_.size() < most_) {
      whole_.push_back(std::move(open));
    } else {
      ++left_out_;
    }
  }

  std::size_t most_;
  int left_out_ = 0, begun_ = 0;
  std::map<std::string, Open> open_;  // by prefix
  std::vector<Open> whole_;
};

}  // namespace

std::string without_colours(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x1b' && at + 1 < text.size() && text[at + 1] == '[') {
      at += 2;
      while (at < text.size() && (text[at] < '@' || text[at] > '~')) ++at;
    } else if (text[at] != '\r') {
      result += text[at];
    }
  }
  return result;
}

std::vector<Traceback> tracebacks_of(std::istream& log, std::size_t most, int* left_out) {
  Reader reader(most);
  for (std::string line; std::getline(log, line);) reader.take(std::move(line));
  return reader.end(left_out);
}

}  // namespace dshang::issue
