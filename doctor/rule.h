// A rule: what it looks at, when it speaks, and what it says.  A new one is one entry in the table of its
// area.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "doctor/facts.h"

namespace dshang::doctor {

enum class Area { kConfig, kHostfile, kEnv, kMachine, kCheckpoint, kModel };
// In order of importance.
enum class Severity { kWillFail, kWillHang, kWrongResult, kRisk, kSlow, kAdvice };

// What a rule says of these facts.
class Hits {
 public:
  struct Hit {
    std::string where, summary, fix;
    std::optional<Severity> severity;
  };
  // `fix` and `severity` stand in the place of the rule's own.
  void add(std::string where, std::string summary, std::string fix = "",
           std::optional<Severity> severity = {}) {
    hits_.push_back({std::move(where), std::move(summary), std::move(fix), severity});
  }
  const std::vector<Hit>& all() const { return hits_; }

 private:
  std::vector<Hit> hits_;
};

struct Rule {
  const char* id;
  Area area;
  Severity severity;
  const char* looks_at;
  const char* condition;
  const char* cause;
  const char* fix;
  const char* reference;  // what the job prints, where it can be read
  void (*check)(const Facts&, Hits&);
};

struct Finding {
  const Rule* rule;
  Severity severity;
  std::string where, summary;
  std::vector<std::string> fix;
};

using Rules = std::vector<Rule>;
const Rules& batch_rules();
const Rules& precision_rules();
const Rules& key_rules();
const Rules& zero_rules();
const Rules& optimizer_rules();
const Rules& parameter_rules();
const Rules& hostfile_rules();
const Rules& env_rules();
const Rules& network_rules();
const Rules& build_rules();
const Rules& machine_rules();
const Rules& memory_rules();
const Rules& checkpoint_rules();
const Rules& model_rules();

std::vector<const Rule*> all_rules();
// One finding of all that a rule says; of very many hits the most important are told, the rest counted.
Finding merged(const Rule& rule, std::vector<Hits::Hit> hits);
// Most important first; one finding a rule.
std::vector<Finding> examine(const Facts& facts, const std::vector<Area>& areas);

const char* area_name(Area area);
const char* severity_words(Severity severity);   // "will fail"
const char* report_severity(Severity severity);  // hang, error, warning, info

// A check that needs a ds_config which could be read.
template <void (*kCheck)(const Facts&, const Config&, Hits&)>
void with_config(const Facts& facts, Hits& hits) {
  if (facts.config && facts.config->readable()) kCheck(facts, *facts.config, hits);
}

}  // namespace dshang::doctor
