#include "detectors/raised.h"

#include <algorithm>

#include "detectors/known_error.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using flight::VisitKind;

constexpr double kAtOnce = 0.1;            // seconds
constexpr std::size_t kMessageShown = 80;  // bytes in the headline; the evidence has all of it

// From when on exceptions count, and up to when: what the rank did where it parted.
struct Span {
  std::uint64_t from_ns = 0, to_ns = 0;
};

std::uint64_t time_of(const job::Token& token) {
  return token.call ? token.call->enter_ns : token.visit ? token.visit->time_ns : 0;
}

std::optional<Span> span_of(const JobView& view, const Divergence& d, const job::RankView& rank) {
  Span span{0, view.now_ns()};
  bool told = rank.rank == d.told_of && !d.story.next.empty();
  if (told && time_of(d.story.next[0])) span.to_ns = time_of(d.story.next[0]);
  const auto& visits = rank.records().visits;
  bool at_next_step = told && d.story.next[0].kind == job::Token::Kind::kStep;
  for (std::uint64_t n = visits.end(); n-- > visits.first() && !span.from_ns;) {
    const job::Visit& visit = visits.at(n);
    bool before = at_next_step ? visit.time_ns < span.to_ns : visit.time_ns <= span.to_ns;
    if (!visit.torn && visit.kind == VisitKind::kStep && before) span.from_ns = visit.time_ns;
  }
  if (span.from_ns) return span;
  job::Seq agreed = d.agreed_until.value_or(0);
  for (const job::Member& member : d.comm->members) {
    if (member.rank == rank.rank && member.has(agreed)) span.from_ns = member.call(agreed).enter_ns;
  }
  return span.from_ns ? std::optional(span) : std::nullopt;
}

bool alike(const JobView& view, const job::Exception& a, const job::Exception& b) {
  auto place = [&](const job::Exception& e) { return e.site ? view.names().place_of(e.site) : 0; };
  return a.type == b.type && place(a) == place(b);
}

bool happened_elsewhere(const JobView& view, const Divergence& d, const job::RankView& suspect,
                        const job::Exception& e, const Span& span) {
  for (const job::RankView& rank : view.ranks) {
    bool suspected =
        rank.rank == d.told_of || std::count(d.suspects.begin(), d.suspects.end(), rank.rank) > 0;
    if (suspected && rank.rank != suspect.rank) continue;
    const auto& exceptions = rank.records().exceptions;
    for (std::uint64_t n = exceptions.first(); n < exceptions.end(); ++n) {
      const job::Exception& other = exceptions.at(n);
      bool counts = rank.rank == suspect.rank ? other.time_ns < span.from_ns
                                              : other.step == e.step || other.step == job::kNoStep;
      if (&other != &e && counts && alike(view, other, e)) return true;
    }
  }
  return false;
}

// When the rank did the next thing that is neither unwinding nor teardown, 0 = it has done nothing.
std::uint64_t went_on_at(const job::RankView& rank, std::uint64_t after_ns) {
  std::uint64_t at = 0;
  auto earlier = [&](std::uint64_t time_ns) {
    if (time_ns > after_ns && (!at || time_ns < at)) at = time_ns;
  };
  const auto& visits = rank.records().visits;
  for (std::uint64_t n = visits.first(); n < visits.end(); ++n) {
    const job::Visit& visit = visits.at(n);
    if (visit.torn) continue;
    if (visit.kind == VisitKind::kTeardown && visit.time_ns > after_ns) return at;
    bool unwinds = visit.kind == VisitKind::kPhasePop || visit.kind == VisitKind::kModuleExit ||
                   visit.kind == VisitKind::kTraceMode;
    if (!unwinds) earlier(visit.time_ns);
  }
  const auto& calls = rank.records().calls;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
    if (!calls.at(n).torn) earlier(calls.at(n).enter_ns);
  }
  return at;
}

std::string type_of(const JobView& view, const job::Exception& e) { return view.names().text(e.type); }

std::string place_of(const JobView& view, const job::Exception& e) {
  std::string at = e.site ? view.names().place_text(view.names().place_of(e.site)) : "";
  return at.empty() ? "" : " at " + at;
}

std::string shortened(const std::string& message) {
  std::string line = message.substr(0, message.find('\n'));
  if (line.size() <= kMessageShown) return line;
  std::size_t cut = kMessageShown;
  while (cut > 0 && (static_cast<unsigned char>(line[cut]) & 0xc0) == 0x80) --cut;  // not within a character
  return line.substr(0, cut) + "...";
}

}  // namespace

std::optional<Raised> raised_before(const JobView& view, const Divergence& d) {
  std::vector<Rank> ranks = d.suspects;
  if (ranks.empty()) ranks = d.told_of >= 0 ? std::vector<Rank>{d.told_of} : d.missing;
  std::optional<Raised> best;
  for (Rank r : ranks) {
    const job::RankView* rank = view.by_rank(r);
    std::optional<Span> span = rank ? span_of(view, d, *rank) : std::nullopt;
    if (!span) continue;
    const auto& exceptions = rank->records().exceptions;
    for (std::uint64_t n = exceptions.end(); n-- > exceptions.first();) {
      const job::Exception& e = exceptions.at(n);
      if (e.time_ns < span->from_ns || e.time_ns > span->to_ns ||
          happened_elsewhere(view, d, *rank, e, *span))
        continue;
      if (best && best->exception->time_ns >= e.time_ns) break;
      std::uint64_t next_ns = went_on_at(*rank, e.time_ns);
      best = {r, &e, next_ns != 0, next_ns ? static_cast<double>(next_ns - e.time_ns) / 1e9 : 0};
      break;
    }
  }
  return best;
}

void tell_raised(const JobView& view, const Raised& raised, Explanation& explanation) {
  const job::Exception& e = *raised.exception;
  const std::string rank = "rank " + std::to_string(raised.rank), message = view.names().text(e.message);
  explanation.summary = "after " + type_of(view, e) +
                        (message.empty() ? "" : " (" + shortened(message) + ")") + place_of(view, e) +
                        (raised.caught ? ", which the program caught, " : ", ") + explanation.summary;
  std::string line =
      rank + " raised " + type_of(view, e) + (message.empty() ? "" : ": " + message) + place_of(view, e);
  if (e.module) line += ", in module " + view.names().text(e.module);
  if (e.step != job::kNoStep) line += ", in step " + std::to_string(e.step);
  line += raised.caught ? "; the program caught it, and the rank went on" +
                              (raised.before < kAtOnce ? "" : " " + seconds_text(raised.before) + " later")
                        : "; the rank has done nothing since that was recorded";
  explanation.evidence.insert(explanation.evidence.begin(), line);
  const char* agree = raised.caught
                          ? ", and do not swallow an exception on one rank only: re-raise it, or "
                            "agree on it (every rank all-reduces a "
                            "flag \"failed\", and all skip the batch, or stop, together)."
                          : ". Where the program handles it and waits, let it end the rank: the others then "
                            "end too.";
  explanation.fix.insert(explanation.fix.begin(),
                         "Mend what raises " + type_of(view, e) + " on " + rank + agree);
  tell_known(view, e, explanation.evidence, explanation.fix);
}

}  // namespace dshang::detect
