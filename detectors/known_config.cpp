// known-error: a configuration or an environment of which a rule of the doctor (doctor/rules_*.cpp) says that
// it cannot work, said while the job runs.
//
// Three kinds, so that nothing is said of a job that works:
// - DeepSpeed refused the configuration, or could not build its engine: rules of the configuration that say
//   "will fail".  The engine's own exception is the proof; which rule explains it is judged.
// - The engine was built and the configuration waits to do harm: "auto" that nobody replaced and the first
// step
//   fails on; a key at the top level that is misspelt and therefore ignored (a warning: it may be the user's
//   own).
// - A rank ended with an error before its first step was done: rules of the environment.
// Left out are rules that need the script, the machine or the hostfile, and what depends on a division of the
// job that the configuration does not tell (mpu, a device mesh).
#include <algorithm>
#include <array>
#include <cstring>

#include "detectors/known_facts.h"
#include "doctor/rule.h"

namespace dshang::detect {
namespace {

constexpr int kMostEngines = 8;
constexpr const char* kBatch = "12.3-1";

enum class Moment { kRefused, kAccepted, kEndedEarly };

struct Chosen {
  const char* id;
  Moment moment;
  doctor::Severity at_least;  // of a rule's hits only these
  Severity severity;
};
constexpr std::array kChosen = {
    Chosen{"X-05", Moment::kAccepted, doctor::Severity::kWillFail, Severity::kError},
    Chosen{"X-21", Moment::kAccepted, doctor::Severity::kWrongResult, Severity::kWarning},
    Chosen{"X-19", Moment::kEndedEarly, doctor::Severity::kWillFail, Severity::kError},
    Chosen{"X-46", Moment::kEndedEarly, doctor::Severity::kWillFail, Severity::kError},
};
// Their conditions hold only together with what is not known here.
constexpr std::array kNeedsMore = {"X-04", "X-20", "X-27", "X-29", "X-49", "12.3-5", "D-02"};

bool is_one_of(const char* id, const auto& ids) {
  return std::any_of(ids.begin(), ids.end(), [&](const char* one) { return !std::strcmp(one, id); });
}

std::string ending_of(int engine) { return engine == 1 ? "" : "." + std::to_string(engine); }

std::map<std::string, std::string> environment_of(const JobView& view, const job::RankView& rank) {
  constexpr std::string_view kPrefix = "env.";
  std::map<std::string, std::string> result;
  const auto& facts = rank.records().facts;
  for (std::uint64_t n = facts.first(); n < facts.end(); ++n) {
    const std::string& key = view.names().text(facts.at(n).key);
    if (key.starts_with(kPrefix)) result[key.substr(kPrefix.size())] = view.names().text(facts.at(n).value);
  }
  return result;
}

// What the rules look at.  The values "auto" that reach the engine are those that nobody replaces any more.
doctor::Facts facts_of(const JobView& view, const job::RankView& rank, const std::string& config) {
  doctor::Facts facts;
  facts.told = true;
  facts.trainer = doctor::Trainer::kPlain;
  facts.deepspeed = fact_of(view, rank, {"version.deepspeed"});
  facts.torch = fact_of(view, rank, {"version.torch"});
  facts.environment = environment_of(view, rank);
  if (rank.records().world_size > 0) facts.world_size = rank.records().world_size;
  if (!config.empty()) facts.config = doctor::Config{"ds_config", doctor::read_document(config)};
  return facts;
}

struct Said {
  const doctor::Rule* rule;
  std::vector<doctor::Hits::Hit> hits;
};

Said said_by(const doctor::Rule& rule, const doctor::Facts& facts, doctor::Severity at_least) {
  doctor::Hits hits;
  rule.check(facts, hits);
  Said said{&rule, {}};
  for (const auto& hit : hits.all()) {
    if (hit.severity.value_or(rule.severity) <= at_least) said.hits.push_back(hit);
  }
  return said;
}

Finding finding_of(const Said& said, Severity severity) {
  Finding f;
  f.type = "known-error";
  f.severity = severity;
  f.certainty = Certainty::kProven;
  f.class_certainty = Certainty::kJudged;
  doctor::Finding merged = doctor::merged(*said.rule, said.hits);
  f.summary = std::move(merged.summary);
  f.fix = std::move(merged.fix);
  f.evidence.push_back("rule " + std::string(said.rule->id) + " of dshang doctor, in " +
                       said.hits.front().where);
  f.evidence.push_back("why: " + std::string(said.rule->cause));
  return f;
}

// Whether an error can come of it: a value that is a text in the place of a number raises one of two types;
// where there is no engine, or the environment is wrong, nothing goes on.
bool can_follow(const Finding& other, Moment moment) {
  if (moment != Moment::kAccepted) return true;
  return std::any_of(other.evidence.begin(), other.evidence.end(), [](const std::string& line) {
    return line.find("TypeError") != line.npos || line.find("ValueError") != line.npos;
  });
}

// Makes it the cause of the errors and hangs that followed.
void add_cause(Work& work, Finding f, Moment moment) {
  bool fails = f.severity >= Severity::kError;
  for (Finding& other : work.findings) {
    bool followed = !other.consequence_of && other.severity >= Severity::kError && other.at >= f.at &&
                    other.type != f.type;
    if (fails && followed && can_follow(other, moment)) other.consequence_of = work.findings.size();
  }
  work.findings.push_back(std::move(f));
}

// Whether this rank recorded what was refused.
bool tell_refusal(Work& work, const job::RankView& rank) {
  const JobView& view = work.view;
  const std::string& error = fact_of(view, rank, {"deepspeed.refused"});
  std::string text = whole_fact_of(view, rank, "deepspeed.given");  // one that was cut off is not judged
  if (error.empty() || text.empty()) return false;
  doctor::Facts facts = facts_of(view, rank, text);
  bool divided = !fact_of(view, rank, {"deepspeed.divided"}).empty();
  for (const doctor::Rule* rule : doctor::all_rules()) {
    bool fitting = rule->area == doctor::Area::kConfig && !is_one_of(rule->id, kNeedsMore) &&
                   !(divided && !std::strcmp(rule->id, kBatch));
    if (!fitting) continue;
    Said said = said_by(*rule, facts, doctor::Severity::kWillFail);
    if (said.hits.empty()) continue;
    Finding f = finding_of(said, Severity::kError);
    f.evidence.push_back("DeepSpeed refused it: " + error);
    f.at = view.seconds(fact_time(view, rank, "deepspeed.refused"));
    add_cause(work, std::move(f), Moment::kRefused);
  }
  return true;
}

const doctor::Rule* rule_named(const char* id) {
  for (const doctor::Rule* rule : doctor::all_rules()) {
    if (!std::strcmp(rule->id, id)) return rule;
  }
  return nullptr;
}

void tell_chosen(Work& work, const doctor::Facts& facts, Moment moment, double at) {
  for (const Chosen& chosen : kChosen) {
    const doctor::Rule* rule = chosen.moment == moment ? rule_named(chosen.id) : nullptr;
    if (!rule) continue;
    Said said = said_by(*rule, facts, chosen.at_least);
    if (said.hits.empty()) continue;
    Finding f = finding_of(said, chosen.severity);
    f.at = at;
    add_cause(work, std::move(f), moment);
  }
}

void tell_accepted(Work& work, const job::RankView& rank) {
  const JobView& view = work.view;
  for (int engine = 1; engine <= kMostEngines; ++engine) {
    const std::string key = "deepspeed.config" + ending_of(engine);
    std::string text = whole_fact_of(view, rank, key);
    if (text.empty()) continue;
    tell_chosen(work, facts_of(view, rank, text), Moment::kAccepted,
                view.seconds(fact_time(view, rank, key)));
    return;  // engines of one program mostly share their configuration
  }
}

bool ended_early(const job::RankView& rank) {
  const auto& death = rank.journal().death;
  return death && (death->by_signal || death->code != 0) && !finished_a_step(rank);
}

// The first rank that can tell: where configurations differ between ranks, facts-differ says so.
void run(Work& work) {
  bool refused = false, accepted = false, ended = false;
  for (const job::RankView& rank : work.view.ranks) {
    // A program may try another configuration, and go on with that.
    std::uint64_t refused_at = fact_time(work.view, rank, "deepspeed.refused");
    bool refuses = refused_at > 0 && fact_time(work.view, rank, "deepspeed.stage") < refused_at;
    bool has_engine = !fact_of(work.view, rank, {"deepspeed.stage"}).empty();
    if (refuses && !refused) refused = tell_refusal(work, rank);
    if (has_engine && !accepted && !refuses) tell_accepted(work, rank), accepted = true;
    if (ended_early(rank) && !ended && !fact_of(work.view, rank, {"version.deepspeed"}).empty()) {
      double at = work.view.seconds(rank.journal().death->time_ns);
      tell_chosen(work, facts_of(work.view, rank, ""), Moment::kEndedEarly, at), ended = true;
    }
  }
}

}  // namespace

DSHANG_DETECTOR(116, "known-error", run);

}  // namespace dshang::detect
