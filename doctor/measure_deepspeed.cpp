// DeepSpeed's own check of the configuration.
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

}  // namespace

void ask_deepspeed(Facts* facts) {
  if (!facts->config || !facts->config->readable()) return;
  auto not_asked = [&](const std::string& why) {
    facts->not_checked.push_back("DeepSpeed's own check of the config: " + why);
  };
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
  } else if (status != 0) {
    not_asked("DeepSpeed cannot be imported by " + python);
  }
}

}  // namespace dshang::doctor
