#include "explain/numbers.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "core/job/printable.h"

namespace dshang::explain {
namespace {

constexpr std::size_t kRecent = 4096, kFewest = 5;  // gradient norms
constexpr double kSpike = 10;                       // times the median
constexpr std::uint64_t kNansInARow = 3;
constexpr std::uint64_t kShrinks = 5;
constexpr double kSmallScale = 1024;
constexpr std::size_t kLongestText = 200;
constexpr long kTellingSteps = 4;  // of a bar

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool ends_with_word(std::string_view text, std::string_view word) {
  if (!text.ends_with(word)) return false;
  return text.size() == word.size() ||
         !std::isalpha(static_cast<unsigned char>(text[text.size() - word.size() - 1]));
}

// "loss': 1.5", "loss=tensor(nan, device=…": the value behind a word that ends at `at`.
std::optional<double> value_behind(std::string_view text, std::size_t at) {
  auto skip = [&](std::string_view any) {
    while (at < text.size() && any.find(text[at]) != std::string_view::npos) ++at;
  };
  if (at < text.size() && (text[at] == '\'' || text[at] == '"')) ++at;
  skip(" \t");
  if (at >= text.size() || (text[at] != ':' && text[at] != '=')) return std::nullopt;
  ++at;
  skip(" \t");
  if (at < text.size() && (text[at] == '\'' || text[at] == '"')) ++at;
  if (text.substr(at).starts_with("tensor(")) at += 7;
  if (at < text.size() && text[at] == '+') ++at;
  std::string_view rest = text.substr(at, 40);
  double value = 0;
  auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), value);  // reads nan and inf too
  if (error != std::errc() && error != std::errc::result_out_of_range) return std::nullopt;
  const char* stop = rest.data() + rest.size();
  if (end != stop && (word_char(*end) || *end == '/')) return std::nullopt;
  return value;
}

// "[01:02:03<…" and "[00:31<…", from behind the bracket; negative: neither.
double seconds_in(std::string_view text) {
  double seconds = 0;
  for (std::size_t at = 0;; ++at) {
    long part = read_number(text, &at);
    if (part < 0 || part > 100000) return -1;
    seconds = seconds * 60 + static_cast<double>(part);
    if (at >= text.size() || text[at] != ':') return at < text.size() && text[at] == '<' ? seconds : -1;
  }
}

Numbers::Event event(const Line& line, std::uint64_t before) {
  return {line.place, line.who, job::printable(line.text.substr(0, kLongestText)), before};
}

}  // namespace

void Numbers::take_loss(const Line& line, std::size_t at) {
  constexpr std::size_t kWord = 4;
  std::string_view before = line.text.substr(0, at);
  bool evaluation = before.ends_with("eval_");
  if (!evaluation && !before.empty() && word_char(before.back())) return;
  std::optional<double> value = value_behind(line.text, at + kWord);
  if (!value) return;
  while (!before.empty() && before.back() == ' ') before.remove_suffix(1);
  for (std::string_view word : {"val", "valid", "validation", "eval", "evaluation", "test"})
    evaluation = evaluation || ends_with_word(before, word);
  bool nan = std::isnan(*value);
  if (evaluation) {
    if (nan && !nan_in_evaluation) nan_in_evaluation = event(line, losses_);
    return;
  }
  Of& of = of_[line.who];
  std::optional<Event>& kind = of.losses ? nan_later : nan_first;
  if (nan && !kind && !nan_first) kind = event(line, of.finite);
  ++of.losses;
  of.finite += std::isfinite(*value);
  ++losses_;
  last_loss_ = value;
}

void Numbers::take_grad_norm(const Line& line, std::size_t at) {
  constexpr std::size_t kWord = 9;
  std::optional<double> value = value_behind(line.text, at + kWord);
  if (!value) return;
  Of& of = of_[line.who];
  if (!std::isfinite(*value)) {
    if (++of.nan_norms_in_a_row == kNansInARow && !nan_gradients) nan_gradients = event(line, of.norms);
    return;
  }
  of.nan_norms_in_a_row = 0;
  ++of.norms;
  float norm = static_cast<float>(*value);
  // The median is no less than the least: most values need no median.
  if (!spike && of.recent.size() >= kFewest && norm > kSpike * of.least) {
    std::vector<float> sorted = of.recent;
    auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    if (norm > kSpike * *middle) {
      spike = Spike{};
      static_cast<Event&>(*spike) = event(line, of.norms - 1);
      spike->value = *value;
      spike->median = *middle;
    }
  }
  of.least = of.recent.empty() ? norm : std::min(of.least, norm);
  if (of.recent.size() < kRecent) {
    of.recent.push_back(norm);
  } else {
    of.recent[of.norms % kRecent] = norm;
  }
}

void Numbers::take_overflow(const Line& line, std::size_t at) {
  Of& of = of_[line.who];
  ++overflows_;
  ++of.overflows;
  std::string_view rest = line.text.substr(at);
  constexpr std::string_view kScale = "Attempted loss scale: ";
  std::size_t scale = rest.find(kScale);
  if (scale == std::string_view::npos) return note_overflow(line, of, 0, true);
  std::string_view number = rest.substr(scale + kScale.size(), 40);
  double attempted = 0;
  std::from_chars(number.data(), number.data() + number.size(), attempted);
  // With hysteresis the scale is tried again; one that had grown in between is the scaler's usual search.
  bool hysteresis = rest.find("hysteresis") != std::string_view::npos;
  if (!hysteresis) note_overflow(line, of, attempted, of.attempted == 0 || attempted < of.attempted);
  if (hysteresis && attempted <= kSmallScale) note_overflow(line, of, attempted, false);
}

void Numbers::note_overflow(const Line& line, Of& of, double attempted, bool falls) {
  if (!falls) of.falls = 0;
  if (of.falls == 0) of.fell_from = attempted;
  ++of.falls;
  of.attempted = attempted;
  bool small = attempted > 0 && attempted <= kSmallScale;
  if (of.falls < kShrinks && !small) return;
  if (!shrinking) {
    shrinking = Shrinking{};
    static_cast<Event&>(*shrinking) = event(line, of.overflows - 1);
  }
  if (shrinking->who != line.who) return;
  shrinking->times = of.overflows;
  shrinking->from = std::max(shrinking->from, of.fell_from);
  shrinking->to = attempted;
}

// "step 12", "global_step12", "step=12,", but no "save_steps: 500".
void Numbers::take_step(const Line& line, std::size_t at) {
  std::string_view text = line.text;
  constexpr std::size_t kWord = 4;
  if (at && word_char(text[at - 1]) && !text.substr(0, at).ends_with("global_")) return;
  std::size_t digits = at + kWord;
  for (std::size_t most = digits + 4; digits < text.size() && digits < most; ++digits) {
    if (std::string_view("'\" :=#[").find(text[digits]) == std::string_view::npos) break;
  }
  long step = read_number(text, &digits);
  if (step > 0 && (digits >= text.size() || text[digits] != '.'))
    step_ = std::max<std::uint64_t>(step_, static_cast<std::uint64_t>(step));
}

// The last bar whose first step was seen, unless one has told enough.
void Numbers::note_bar(const Line& line, long step, long all, double elapsed) {
  if (elapsed < 0 || all <= 1) return;
  if (step == 1 && (!bar || bar->last < kTellingSteps)) {
    bar.emplace();
    static_cast<Event&>(*bar) = event(line, 0);
    bar->all = all;
    bar->last = 1;
    bar->first = bar->elapsed = elapsed;
  } else if (bar && step > bar->last && all == bar->all && elapsed >= bar->elapsed) {
    bar->last = step;
    bar->elapsed = elapsed;
  }
}

void Numbers::take_bar(const Line& line, std::size_t at) {
  std::string_view head = line.text.substr(0, at);
  std::size_t bracket = head.rfind(" [");
  if (bracket == std::string_view::npos) return;
  std::size_t slash = head.rfind('/', bracket);
  if (slash == std::string_view::npos) return;
  std::size_t begin = slash;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(head[begin - 1]))) --begin;
  // Bars of files and of tokens are not those of a training loop.
  for (std::string_view word : {"oading", "ownload", "okeniz", "Map", "Generating", "Filter", "shards"}) {
    if (head.find(word) != std::string_view::npos) return;
  }
  long step = read_number(head, &begin);
  if (step <= 0 || begin != slash) return;
  step_ = std::max<std::uint64_t>(step_, static_cast<std::uint64_t>(step));
  std::size_t digits = slash + 1;
  long all = read_number(head, &digits);
  note_bar(line, step, all, seconds_in(head.substr(bracket + 2)));
}

}  // namespace dshang::explain
