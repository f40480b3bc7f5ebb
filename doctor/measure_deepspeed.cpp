// What the installed DeepSpeed says itself: its check of the configuration, and ds_report.
#include <filesystem>
#include <regex>
#include <sstream>

#include "doctor/command.h"
#include "doctor/measure.h"

namespace dshang::doctor {
namespace {

constexpr double kImportPatience = 60;  // seconds: importing torch and DeepSpeed from a cold disk
constexpr const char* kRefusal = "dshang-refused ";

// The number of ranks is told instead of asked of a process group, which there is none of.
constexpr const char* kCheck = R"(
import os, sys
os.environ.setdefault("DS_ACCELERATOR", "cpu")
try:
    from deepspeed.runtime import config
except Exception:
    sys.exit(3)
ranks = int(sys.argv[2])
config.dist.get_rank = lambda *_: 0
config.dist.get_world_size = lambda *_: ranks
try:
    config.DeepSpeedConfig(sys.argv[1])
except Exception as error:
    text = type(error).__name__ + ": " + " ".join(str(error).split())
    print("\ndshang-refused " + text[:600], flush=True)
)";

bool has_auto(const Json& value) {
  if (value == "auto") return true;
  for (const Json& inner : value.is_structured() ? value : Json::array()) {
    if (has_auto(inner)) return true;
  }
  return false;
}

// A number of ranks for which the batch sizes fit, where it is not known: they are not to be judged then.
int fitting_ranks(const Config& config) {
  double total = config.number("train_batch_size").value_or(0);
  double share = config.number("train_micro_batch_size_per_gpu").value_or(0) *
                 config.number("gradient_accumulation_steps").value_or(1);
  return share > 0 && total > share && total < 1e7 ? static_cast<int>(total / share) : 1;
}

std::string no_answer() {
  return "no answer within " + std::to_string(static_cast<int>(kImportPatience)) + " s";
}

std::string without_colours(const std::string& text) {
  static const std::regex kColour("\x1b\\[[0-9;]*m");
  return std::regex_replace(text, kColour, "");
}

// "cpu_adam ............... [NO] ....... [OKAY]": built before, can be built now.  Returns the last line.
std::string take_report(const std::string& text, std::map<std::string, Op>* ops) {
  static const std::regex kRow("^(\\w+) \\.+ \\[(YES|NO)\\] \\.+ \\[(OKAY|NO)\\]\\s*$");
  std::istringstream lines(without_colours(text));
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    if (!line.empty()) last = line;
    if (std::regex_match(line, parts, kRow)) (*ops)[parts[1]] = {parts[2] == "YES", parts[3] == "OKAY"};
  }
  return last;
}

}  // namespace

void ask_ds_report(Facts* facts) {
  auto not_asked = [&](const std::string& why) { facts->not_checked.push_back("ds_report: " + why); };
  if (facts->deepspeed.empty()) return not_asked("DeepSpeed is not installed here");
  std::string python = python_of(*facts);
  if (python.empty()) return not_asked("no Python program is on PATH");
  int status = 0;
  std::string said = output_of({python, "-m", "deepspeed.env_report"}, kImportPatience, &status);
  std::string last = take_report(said, &facts->machine.ops);
  if (status < 0) return not_asked(no_answer());
  if (status > 0) facts->ds_report_fails = last.empty() ? "status " + std::to_string(status) : last;
}

void ask_deepspeed(Facts* facts) {
  if (!facts->config || !facts->config->readable()) return;
  auto not_asked = [&](const std::string& why) {
    facts->not_checked.push_back("DeepSpeed's own check of the config: " + why);
  };
  std::error_code error;
  if (!std::filesystem::is_regular_file(facts->config->path, error)) return not_asked("it is no file");
  if (facts->trainer == Trainer::kHf || has_auto(facts->config->document.value))
    return not_asked("\"auto\" and Hugging Face's arguments are replaced only when the job starts");
  std::string python = python_of(*facts);
  if (python.empty()) return not_asked("no Python program is on PATH");
  std::string ranks = std::to_string(facts->data_parallel().value_or(fitting_ranks(*facts->config)));
  int status = 0;
  std::string said = output_of({python, "-c", kCheck, facts->config->path, ranks}, kImportPatience, &status);
  std::size_t at = said.rfind(kRefusal);
  if (at != std::string::npos) {
    facts->deepspeed_refuses = said.substr(at + std::string(kRefusal).size());
    facts->deepspeed_refuses.erase(facts->deepspeed_refuses.find_last_not_of("\n") + 1);
  } else if (status < 0) {
    not_asked(no_answer());
  } else if (status != 0) {
    not_asked("DeepSpeed cannot be imported by " + python);
  }
}

}  // namespace dshang::doctor
