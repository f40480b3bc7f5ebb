#include "core/job/parse.h"

#include <algorithm>
#include <utility>

#include "core/flight/hash.h"
#include "core/job/field_reader.h"
#include "core/job/load.h"
#include "core/job/printable.h"
#include "core/job/text_fields.h"
#include "core/job/text_line.h"
#include "core/job/text_site.h"

namespace dshang::job {
namespace {

class Parser {
 public:
  explicit Parser(Names& names)
      : names_(names), scope_{names, kDefaultStartNs, {}, {}}, context_(kDefaultStartNs) {}

  void line(std::string_view line);
  void end_of_rank();
  std::vector<RankRecords> take() { return std::move(ranks_); }
  // The line that a TextError is about.
  std::size_t number() const { return number_; }

 private:
  // Lines whose defaults are known at the end of the rank only.
  struct Later {
    std::size_t number;
    std::vector<TextToken> tokens;
  };
  using Tokens = std::vector<TextToken>;

  void begin_rank(Tokens tokens);
  void first(Tokens tokens);
  void op(Tokens tokens);
  void site(Tokens tokens);
  void comm(Tokens tokens);
  void call(Tokens tokens);
  void visit(Tokens tokens);
  std::uint8_t op_of(const TextToken& token) const;
  template <typename T, typename Fields>
  void record(Window<T>& window, Tokens tokens, const char* what, Fields fields);
  void later(std::vector<Later>& lines, Tokens tokens, const char* what);

  Names& names_;
  TextScope scope_;
  TextContext context_;
  std::vector<RankRecords> ranks_;
  RankRecords* r_ = nullptr;
  bool own_ops_ = false;
  std::vector<bool> calls_said_;  // by communicator
  std::vector<Later> process_, ending_;
  std::size_t number_ = 0;
};

void Parser::line(std::string_view text) {
  ++number_;
  Tokens tokens = tokens_of(text);
  if (tokens.empty()) return;
  std::string word = tokens[0].key.empty() && !tokens[0].quoted ? tokens[0].text : "";
  tokens.erase(tokens.begin());
  if (word == "rank") return begin_rank(std::move(tokens));
  if (word == "site") return site(std::move(tokens));
  if (!r_) throw TextError("the first line is `rank <number> ...`");
  RankRecords& r = *r_;
  if (word == "first") return first(std::move(tokens));
  if (word == "op") return op(std::move(tokens));
  if (word == "comm") return comm(std::move(tokens));
  if (word == "call") return call(std::move(tokens));
  if (word == "visit") return visit(std::move(tokens));
  if (word == "process") return later(process_, std::move(tokens), "process");
  if (word == "ending") return later(ending_, std::move(tokens), "ending");
  if (word == "thread") {
    FieldReader f(std::move(tokens), scope_, "thread");
    thread_fields(f, r.threads.emplace_back());
    return f.finish();
  }
  if (word == "now") {
    FieldReader f(std::move(tokens), scope_, "now");
    now_fields(f, r);
    return f.finish();
  }
  auto with_context = [this](auto fields) {
    return [this, fields](FieldReader& f, auto& item) { fields(f, item, context_); };
  };
  if (word == "fact") {
    return record(r.facts, std::move(tokens), "fact",
                  with_context([](auto& f, auto& i, auto& c) { fact_fields(f, i, c); }));
  }
  if (word == "memory") {
    return record(r.memory_steps, std::move(tokens), "memory",
                  with_context([](auto& f, auto& i, auto& c) { memory_fields(f, i, c); }));
  }
  if (word == "alloc_failed") {
    return record(r.alloc_failures, std::move(tokens), "alloc_failed",
                  with_context([](auto& f, auto& i, auto& c) { alloc_failed_fields(f, i, c); }));
  }
  if (word == "exception") {
    return record(r.exceptions, std::move(tokens), "exception",
                  with_context([](auto& f, auto& i, auto& c) { exception_fields(f, i, c); }));
  }
  if (word == "stack") {
    return record(r.stacks, std::move(tokens), "stack",
                  with_context([](auto& f, auto& i, auto& c) { stack_fields(f, i, c); }));
  }
  throw TextError(
      "unknown line \"" + word.substr(0, 60) +
      "\"; allowed: rank site op first comm thread fact call visit memory alloc_failed exception stack now "
      "process ending");
}

template <typename T, typename Fields>
void Parser::record(Window<T>& window, Tokens tokens, const char* what, Fields fields) {
  FieldReader f(std::move(tokens), scope_, what);
  T item;
  fields(f, item);
  f.finish();
  window.push(std::move(item));
}

void Parser::later(std::vector<Later>& lines, Tokens tokens, const char* what) {
  if (!lines.empty()) throw TextError(std::string("a rank has one line `") + what + "`");
  lines.push_back({number_, std::move(tokens)});
}

// `rank 0 pid 100 ...`: a word and its value follow each other.
void Parser::begin_rank(Tokens tokens) {
  end_of_rank();
  Tokens pairs(tokens.begin(),
               tokens.begin() + std::min<std::ptrdiff_t>(1, static_cast<std::ptrdiff_t>(tokens.size())));
  for (std::size_t i = 1; i < tokens.size(); i += 2) {
    if (!tokens[i].key.empty())
      throw TextError("in the line `rank`, words and values stand in turns, without =");
    if (i + 1 == tokens.size()) throw TextError("nothing stands behind " + tokens[i].text);
    if (!tokens[i + 1].key.empty())
      throw TextError("in the line `rank`, words and values stand in turns, without =");
    pairs.push_back({tokens[i].text, tokens[i + 1].text, tokens[i + 1].quoted});
  }
  r_ = &ranks_.emplace_back();
  r_->ops = default_ops();
  own_ops_ = false;
  calls_said_.clear();
  scope_.comms.clear();
  FieldReader f(std::move(pairs), scope_, "rank");
  rank_fields(f, *r_);
  f.finish();
  scope_.start_ns = r_->start_ns;
  context_ = TextContext(r_->start_ns);
}

void Parser::first(Tokens tokens) {
  FirstNumbers first;
  FieldReader f(std::move(tokens), scope_, "first");
  first_fields(f, first);
  f.finish();
  RankRecords& r = *r_;
  bool all_empty = r.calls.empty() && r.visits.empty() && r.memory_steps.empty() &&
                   r.alloc_failures.empty() && r.exceptions.empty() && r.stacks.empty() && r.facts.empty();
  if (!all_empty) throw TextError("`first` stands before the records");
  r.calls.drop_before(first.calls);
  r.visits.drop_before(first.visits);
  r.memory_steps.drop_before(first.memory);
  r.alloc_failures.drop_before(first.alloc_failed);
  r.exceptions.drop_before(first.exceptions);
  r.stacks.drop_before(first.stacks);
  r.facts.drop_before(first.facts);
}

void Parser::op(Tokens tokens) {
  if (!r_->calls.empty()) throw TextError("`op` stands before the calls");
  if (!std::exchange(own_ops_, true)) r_->ops.clear();
  if (r_->ops.size() > UINT8_MAX) throw TextError("there are at most 256 operations");
  FieldReader f(std::move(tokens), scope_, "op");
  flight::OpInfo op{};
  op_fields(f, op);
  f.finish();
  r_->ops.push_back(op);
}

void Parser::site(Tokens tokens) {
  FieldReader f(std::move(tokens), scope_, "site");
  std::string name = f.first_bare("a name").text;
  bool truncated = f.take_word("truncated");
  TextToken frames = f.first_bare("its frames, \"file:line function | ...\"");
  f.finish();
  scope_.sites[name] = names_.site(frames_of(frames.text, names_), truncated);
}

void Parser::comm(Tokens tokens) {
  FieldReader f(std::move(tokens), scope_, "comm");
  std::string name = f.first_bare("a name").text;
  std::uint32_t index = static_cast<std::uint32_t>(r_->comms.size());
  Comm comm;
  comm_fields(f, comm, *r_, flight::fnv1a(name.data(), name.size()), context_);
  calls_said_.push_back(f.has("calls"));
  f.number("calls", comm.calls, 0);
  f.finish();
  if (!scope_.comms.emplace(name, index).second)
    throw TextError("communicator \"" + name + "\" stands twice");
  r_->comms.push_back(comm);
}

std::uint8_t Parser::op_of(const TextToken& token) const {
  const std::vector<flight::OpInfo>& ops = r_->ops;
  if (token.text.starts_with('@')) {
    std::uint64_t index = to_unsigned(std::string_view(token.text).substr(1));
    if (index < ops.size()) return static_cast<std::uint8_t>(index);
  }
  std::string allowed;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (token.text == ops[i].name) return static_cast<std::uint8_t>(i);
    allowed += ' ' + std::string(ops[i].name);
  }
  throw TextError("unknown operation \"" + token.text.substr(0, 60) + "\"; allowed:" + allowed);
}

void Parser::call(Tokens tokens) {
  FieldReader f(std::move(tokens), scope_, "call");
  Call call;
  if (f.take_word("torn")) {
    call.torn = true;
  } else {
    call.op = op_of(f.first_bare("an operation"));
    call_fields(f, call, r_->ops[call.op].traits, r_->visits.end(), context_);
    context_.pass(call, r_->ops[call.op].traits);
  }
  f.finish();
  r_->calls.push(call);
}

void Parser::visit(Tokens tokens) {
  FieldReader f(std::move(tokens), scope_, "visit");
  Visit visit;
  if (f.take_word("torn")) {
    visit.torn = true;
  } else {
    f.word_first(visit.kind, words::kVisit);
    visit_fields(f, visit, r_->calls.end(), context_);
    context_.pass(visit);
  }
  f.finish();
  r_->visits.push(visit);
}

void Parser::end_of_rank() {
  if (!r_) return;
  std::size_t here = number_;
  for (std::uint32_t i = 0; i < r_->comms.size(); ++i) {
    if (!calls_said_[i]) r_->comms[i].calls = context_.collectives(i);
  }
  if (!process_.empty()) number_ = process_[0].number;
  FieldReader process(process_.empty() ? Tokens() : std::move(process_[0].tokens), scope_, "process");
  process_fields(process, *r_, context_);
  process.finish();
  if (!ending_.empty()) {
    number_ = ending_[0].number;
    FieldReader ending(std::move(ending_[0].tokens), scope_, "ending");
    ending_fields(ending, *r_, context_);
    ending.finish();
  }
  process_.clear();
  ending_.clear();
  apply_environment_facts(*r_, names_);
  r_ = nullptr;
  number_ = here;
}

}  // namespace

Parsed parse(std::string_view text, Names& names) {
  Parser parser(names);
  try {
    while (!text.empty()) {
      std::size_t end = std::min(text.find('\n'), text.size());
      parser.line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    parser.end_of_rank();
  } catch (const TextError& error) {
    std::string what = printable(error.what());  // it may cite the text
    std::replace(what.begin(), what.end(), '\n', ' ');
    return {{}, "line " + std::to_string(parser.number()) + ": " + what};
  }
  return {parser.take(), ""};
}

}  // namespace dshang::job
