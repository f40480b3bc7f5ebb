#include "core/job/dump.h"

#include <algorithm>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "core/flight/hash.h"
#include "core/job/text_fields.h"
#include "core/job/text_line.h"
#include "core/job/text_site.h"

namespace dshang::job {
namespace {

// Sites get short names in the order in which the text uses them.
class SiteNames {
 public:
  std::string name_of(SiteId id) {
    auto [found, is_new] = index_.try_emplace(id, order_.size() + 1);
    if (is_new) order_.push_back(id);
    return "s" + std::to_string(found->second);
  }
  const std::vector<SiteId>& order() const { return order_; }

 private:
  std::unordered_map<SiteId, std::size_t> index_;
  std::vector<SiteId> order_;
};

std::string comm_word(std::uint32_t comm) { return "c" + std::to_string(comm); }

// What stands in one line behind its first word.  Values that are what the reader would take anyway are left
// out.
class FieldWriter {
 public:
  FieldWriter(std::string& out, const Names& names, SiteNames& sites, std::uint64_t start_ns,
              char between = '=')
      : out_(out), names_(names), sites_(sites), start_ns_(start_ns), between_(between) {}

  void say(std::string_view word) {
    out_ += ' ';
    out_ += word;
  }
  void pair(std::string_view key, std::string_view text) {
    say(key);
    out_ += between_;
    out_ += text;
  }

  void bare(NameId name) { say(name ? quoted_if_needed(names_.text(name)) : "-"); }
  template <typename T>
  void bare_signed(T value) {
    say(std::to_string(value));
  }
  template <typename T>
  void bare_unsigned(T value) {
    say(std::to_string(value));
  }
  void bare_step(std::int64_t step) { say(step_text(step)); }
  void op_name(const char* name) { say(quoted_if_needed(name)); }
  template <std::size_t N>
  void bits(std::uint32_t bits, const std::string_view (&table)[N]) {
    for (std::size_t i = 0; i < N; ++i) {
      if (bits >> i & 1) say(table[i]);
    }
    if (bits >> N) pair("bits", to_hex(bits >> N << N));
  }
  template <typename E, std::size_t N>
  void word_first(E value, const std::string_view (&table)[N]) {
    say(table[static_cast<unsigned>(value) % N]);
  }

  void number_if(std::uint64_t value, std::uint64_t by_default) {
    if (value != by_default) say(std::to_string(value));
  }
  template <typename E, std::size_t N>
  void word_if(E value, const std::string_view (&table)[N], E by_default) {
    if (value != by_default) word_first(value, table);
  }
  void call_flags(std::uint32_t flags, std::uint32_t with) {
    for (const words::CallState& state : words::kCallStates) {
      if (flags != (state.flags | with)) continue;
      if (&state != &words::kCallStates[0]) say(state.word);
      return;
    }
    std::string text;
    for (std::size_t i = 0; i < std::size(words::kCallFlag); ++i) {
      if (flags >> i & 1) text += (text.empty() ? "" : "+") + std::string(words::kCallFlag[i]);
    }
    std::uint32_t rest = flags >> std::size(words::kCallFlag) << std::size(words::kCallFlag);
    if (rest) text += (text.empty() ? "" : "+") + to_hex(rest);
    pair("flags", text.empty() ? "none" : text);
  }

  template <typename T>
  void number(std::string_view key, T value, std::type_identity_t<T> by_default) {
    if (value != by_default) pair(key, std::to_string(value));
  }
  void hex(std::string_view key, std::uint64_t value, std::uint64_t by_default) {
    if (value != by_default) pair(key, to_hex(value));
  }
  void id(std::string_view key, std::uint64_t value, std::uint64_t by_default) {
    hex(key, value, by_default);
  }
  void time(std::string_view key, std::uint64_t ns, std::uint64_t by_default) {
    time_from(start_ns_, key, ns, by_default);
  }
  void time_from(std::uint64_t start, std::string_view key, std::uint64_t ns, std::uint64_t by_default) {
    if (ns != by_default) pair(key, ns ? seconds_text(static_cast<std::int64_t>(ns - start)) : "-");
  }
  void step(std::string_view key, std::int64_t step, std::int64_t by_default) {
    if (step != by_default) pair(key, step_text(step));
  }
  void name(std::string_view key, NameId name, NameId by_default) {
    if (name != by_default) pair(key, name ? quoted_if_needed(names_.text(name)) : "-");
  }
  void plain(std::string_view key, const std::string& text) {
    if (!text.empty()) pair(key, quoted_if_needed(text));
  }
  void site(std::string_view key, SiteId site) {
    if (site) pair(key, sites_.name_of(site));
  }
  void sizes(std::string_view key, const std::uint32_t (&sizes)[flight::kBatchSizes]) {
    std::string text;
    for (std::uint32_t size : sizes) {
      if (size == 0) break;
      text += (text.empty() ? "" : "x") + std::to_string(size);
    }
    if (!text.empty()) pair(key, text);
  }
  void comm(std::string_view key, std::uint32_t comm) {
    if (comm) pair(key, comm_word(comm));
  }
  template <typename E, std::size_t N>
  void word(std::string_view key, E value, const std::string_view (&table)[N],
            std::type_identity_t<E> by_default) {
    if (value != by_default) pair(key, table[static_cast<unsigned>(value) % N]);
  }

 private:
  static std::string step_text(std::int64_t step) { return step == kNoStep ? "-" : std::to_string(step); }

  std::string& out_;
  const Names& names_;
  SiteNames& sites_;
  std::uint64_t start_ns_;
  char between_;
};

bool same_ops(const std::vector<flight::OpInfo>& a, const std::vector<flight::OpInfo>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const flight::OpInfo& x, const flight::OpInfo& y) {
                      return std::string_view(x.name) == y.name && x.traits == y.traits;
                    });
}

class Dumper {
 public:
  Dumper(const RankRecords& records, const Names& names)
      : r_(records), names_(names), context_(records.start_ns) {}

  std::string text();

 private:
  // One line; one that says nothing behind its first word is left out where `if_any`.
  template <typename Fields>
  void line(std::string_view word, Fields fields, bool if_any = false);
  template <typename T, typename Fields>
  void each(const Window<T>& window, std::string_view word, Fields fields);
  std::string op_word(std::uint8_t op) const;
  void ops();
  void comms();
  void calls_and_visits();
  void call(std::uint64_t n, std::uint64_t visits_before);
  void visit(std::uint64_t n, std::uint64_t calls_before);
  void rest();
  std::string head();

  const RankRecords& r_;
  const Names& names_;
  TextContext context_;
  SiteNames sites_;
  std::string body_;
};

template <typename Fields>
void Dumper::line(std::string_view word, Fields fields, bool if_any) {
  std::size_t before = body_.size();
  body_ += word;
  FieldWriter writer(body_, names_, sites_, r_.start_ns);
  fields(writer);
  if (if_any && body_.size() == before + word.size()) {
    body_.resize(before);
  } else {
    body_ += '\n';
  }
}

template <typename T, typename Fields>
void Dumper::each(const Window<T>& window, std::string_view word, Fields fields) {
  for (std::uint64_t n = window.first(); n < window.end(); ++n) {
    line(word, [&](FieldWriter& f) { fields(f, window.at(n)); });
  }
}

// An operation whose name does not lead back to it is given by its number.
std::string Dumper::op_word(std::uint8_t op) const {
  std::string_view name = r_.ops[op].name;
  auto first =
      std::find_if(r_.ops.begin(), r_.ops.end(), [&](const flight::OpInfo& o) { return name == o.name; });
  bool leads_back = !name.empty() && name != "torn" && first - r_.ops.begin() == op;
  return leads_back ? quoted_if_needed(name) : "@" + std::to_string(op);
}

void Dumper::ops() {
  if (same_ops(r_.ops, default_ops())) return;
  for (const flight::OpInfo& op : r_.ops) {
    line("op", [&](FieldWriter& f) { op_fields(f, op); });
  }
}

void Dumper::comms() {
  // How many calls each made follows from the calls, so they are gone through first.
  TextContext all(r_.start_ns);
  for (std::uint64_t n = r_.calls.first(); n < r_.calls.end(); ++n) {
    const Call& call = r_.calls.at(n);
    if (!call.torn) all.pass(call, r_.ops[call.op].traits);
  }
  for (std::uint32_t i = 0; i < r_.comms.size(); ++i) {
    std::string name = comm_word(i);
    line("comm " + name, [&](FieldWriter& f) {
      comm_fields(f, r_.comms[i], r_, flight::fnv1a(name.data(), name.size()), context_);
      f.number("calls", r_.comms[i].calls, all.collectives(i));
    });
  }
}

void Dumper::call(std::uint64_t n, std::uint64_t visits_before) {
  const Call& call = r_.calls.at(n);
  line("call", [&](FieldWriter& f) {
    if (call.torn) return f.say("torn");
    f.say(op_word(call.op));
    call_fields(f, call, r_.ops[call.op].traits, visits_before, context_);
    context_.pass(call, r_.ops[call.op].traits);
  });
}

void Dumper::visit(std::uint64_t n, std::uint64_t calls_before) {
  const Visit& visit = r_.visits.at(n);
  line("visit", [&](FieldWriter& f) {
    if (visit.torn) return f.say("torn");
    f.word_first(visit.kind, words::kVisit);
    visit_fields(f, visit, calls_before, context_);
    context_.pass(visit);
  });
}

// In the order in which they were made, as far as they know it of each other.
void Dumper::calls_and_visits() {
  std::uint64_t n = r_.calls.first(), v = r_.visits.first();
  while (n < r_.calls.end() || v < r_.visits.end()) {
    bool call_is_next;
    if (n == r_.calls.end() || v == r_.visits.end()) {
      call_is_next = n < r_.calls.end();
    } else if (r_.visits.at(v).torn) {
      call_is_next = false;
    } else {
      call_is_next = r_.calls.at(n).torn || r_.calls.at(n).visits_before <= v;
    }
    if (call_is_next) {
      call(n++, v);
    } else {
      visit(v++, n);
    }
  }
}

void Dumper::rest() {
  each(r_.memory_steps, "memory",
       [&](FieldWriter& f, const auto& step) { memory_fields(f, step, context_); });
  each(r_.alloc_failures, "alloc_failed",
       [&](FieldWriter& f, const auto& a) { alloc_failed_fields(f, a, context_); });
  each(r_.exceptions, "exception", [&](FieldWriter& f, const auto& e) { exception_fields(f, e, context_); });
  each(r_.stacks, "stack", [&](FieldWriter& f, const auto& stack) { stack_fields(f, stack, context_); });
  line(
      "now", [&](FieldWriter& f) { now_fields(f, r_); }, true);
  line(
      "process", [&](FieldWriter& f) { process_fields(f, r_, context_); }, true);
  if (r_.ending != flight::EndingKind::kNone) {
    line("ending", [&](FieldWriter& f) { ending_fields(f, r_, context_); });
  }
}

// Written last, because only then the sites are known.
std::string Dumper::head() {
  std::string out = "rank";
  FieldWriter writer(out, names_, sites_, r_.start_ns, ' ');
  rank_fields(writer, r_);
  out += '\n';
  for (std::size_t i = 0; i < sites_.order().size(); ++i) {
    const Site& site = names_.site(sites_.order()[i]);
    out += "site s" + std::to_string(i + 1) + (site.truncated ? " truncated " : " ");
    out += quoted_if_needed(frames_text(site.frames, names_)) + '\n';
  }
  return out;
}

std::string Dumper::text() {
  ops();
  FirstNumbers first{r_.calls.first(),          r_.visits.first(),     r_.memory_steps.first(),
                     r_.alloc_failures.first(), r_.exceptions.first(), r_.stacks.first(),
                     r_.facts.first()};
  line(
      "first", [&](FieldWriter& f) { first_fields(f, first); }, true);
  each(r_.facts, "fact", [&](FieldWriter& f, const auto& fact) { fact_fields(f, fact, context_); });
  comms();
  for (const Thread& thread : r_.threads) {
    line("thread", [&](FieldWriter& f) { thread_fields(f, thread); });
  }
  calls_and_visits();
  rest();
  return head() + body_;
}

}  // namespace

std::string dump(const RankRecords& records, const Names& names) { return Dumper(records, names).text(); }

}  // namespace dshang::job
