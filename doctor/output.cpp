#include "doctor/output.h"

#include <cctype>
#include <sstream>

#include "core/job/printable.h"

namespace dshang::doctor {
namespace {

constexpr std::size_t kWidth = 110;

// `text` after `label`, broken into lines between words; those after the first stand below its beginning.
void put(const std::string& label, const std::string& text, std::string* out) {
  std::string line = label;
  std::istringstream words(job::printable(text));
  bool first = true;
  for (std::string word; words >> word;) {
    if (!first && line.size() + 1 + word.size() > kWidth) {
      *out += line + "\n";
      line = std::string(label.size(), ' ');
      first = true;
    }
    line += (first ? "" : " ") + word;
    first = false;
  }
  *out += line + "\n";
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string counted(int number, const char* one, const char* many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

std::string looked_at(const Facts& facts) {
  std::string text;
  auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (facts.config) add(facts.config->path);
  if (facts.world_size) add(counted(*facts.world_size, "rank", "ranks"));
  if (facts.nodes && *facts.nodes > 1) add(counted(*facts.nodes, "node", "nodes"));
  if (facts.trainer == Trainer::kHf) add("Hugging Face");
  if (facts.trainer == Trainer::kPlain) add("plain deepspeed.initialize");
  if (!facts.deepspeed.empty()) add("DeepSpeed " + facts.deepspeed);
  if (!facts.torch.empty()) add("torch " + facts.torch);
  return text;
}

std::string closing(const std::vector<Finding>& findings) {
  int wrong = 0, rest = 0;
  for (const Finding& finding : findings) (finding.severity <= Severity::kWrongResult ? wrong : rest) += 1;
  std::string text = wrong ? counted(wrong, "thing is wrong", "things are wrong") : "nothing wrong found";
  if (rest) text += "; " + counted(rest, "remark", "remarks");
  return text + "\n";
}

}  // namespace

std::string json_of(const std::vector<Finding>& findings, const Facts& facts) {
  nlohmann::ordered_json out = {
      {"schema", 1}, {"findings", Json::array()}, {"not_checked", facts.not_checked}};
  for (const Finding& finding : findings) {
    nlohmann::ordered_json one = {{"id", finding.rule->id},
                                  {"severity", report_severity(finding.severity)},
                                  {"where", finding.where},
                                  {"summary", finding.summary},
                                  {"fix", finding.fix}};
    out["findings"].push_back(one);
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string text_of(const std::vector<Finding>& findings, const Facts& facts) {
  std::string out;
  std::string about = looked_at(facts);
  if (!about.empty()) put("dshang doctor: ", about, &out);
  for (const Finding& finding : findings) {
    out += "\n";
    put(upper(severity_words(finding.severity)) + " [" + finding.rule->id + "] ", finding.summary, &out);
    if (!finding.where.empty()) put("  where: ", finding.where, &out);
    put("  why:   ", finding.rule->cause, &out);
    for (const std::string& fix : finding.fix) put("  fix:   ", fix, &out);
    put("  see:   ", finding.rule->reference, &out);
  }
  out += "\n" + closing(findings);
  for (const std::string& note : facts.not_checked) put("not checked: ", note, &out);
  return out;
}

std::string rules_text() {
  std::string out;
  for (const Rule* rule : all_rules()) {
    put(std::string(rule->id) + "  ",
        std::string(severity_words(rule->severity)) + ", " + area_name(rule->area), &out);
    put("  looks at: ", rule->looks_at, &out);
    put("  when:     ", rule->condition, &out);
    put("  why:      ", rule->cause, &out);
    put("  fix:      ", rule->fix, &out);
    put("  see:      ", rule->reference, &out);
    out += "\n";
  }
  return out + counted(static_cast<int>(all_rules().size()), "rule", "rules") + "\n";
}

std::string rules_json() {
  nlohmann::ordered_json out = {{"schema", 1}, {"rules", Json::array()}};
  for (const Rule* rule : all_rules()) {
    nlohmann::ordered_json one = {{"id", rule->id},
                                  {"area", area_name(rule->area)},
                                  {"severity", severity_words(rule->severity)},
                                  {"looks_at", rule->looks_at},
                                  {"condition", rule->condition},
                                  {"cause", rule->cause},
                                  {"fix", rule->fix},
                                  {"reference", rule->reference}};
    out["rules"].push_back(one);
  }
  return out.dump(2) + "\n";
}

}  // namespace dshang::doctor
