#include "issue/job.h"

#include <algorithm>
#include <stdexcept>

#include "core/job/input_file.h"
#include "core/job/long_text.h"
#include "issue/shell_words.h"
#include "issue/tracebacks.h"

namespace dshang::issue {
namespace {

constexpr std::size_t kShortScript = 50;  // lines: what a report may ask others to read
constexpr std::size_t kMostTracebacks = 6;

const std::string kUnknown;

std::size_t lines_in(const std::string& text) {
  auto count = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  return count + (text.empty() || text.back() == '\n' ? 0 : 1);
}

void add_report(const RecordedJob* job, Material* material) {
  if (!job) {
    material->missing.push_back("dshang's report: no job is named, and none lies here (dshang issue DIR)");
    return;
  }
  material->sections.push_back({"What dshang found", "", "report.txt", job->report_text, "text", false});
}

std::string ranks_text(const RecordedJob* job, const doctor::Facts& facts) {
  int ranks = job && job->world_size > 0 ? job->world_size : facts.world_size.value_or(0);
  int nodes = job && job->world_size > 0 ? job->nodes : facts.nodes.value_or(0);
  std::string text = ranks > 0 ? "Ranks: " + std::to_string(ranks) : "The number of ranks is not known";
  if (nodes > 0) text += ", nodes: " + std::to_string(nodes);
  std::string hosts;
  for (std::size_t i = 0; job && i < job->hosts.size(); ++i) hosts += (i ? ", " : " (") + job->hosts[i];
  return text + (hosts.empty() ? "" : hosts + ")") + ".";
}

void add_launch(const RecordedJob* job, const doctor::Facts& facts, Material* material) {
  std::string command = command_text(facts.launch.words);
  if (command.empty() && job) command = job->fact("program.launcher");
  if (command.empty() && job) command = job->fact("program.command");
  if (command.empty())
    material->missing.push_back("the launch line: give it after -- (dshang issue -- deepspeed … train.py)");
  material->sections.push_back(
      {"How it was started", ranks_text(job, facts), "command.txt", command, "sh", false});
}

void add_script(const doctor::Facts& facts, Material* material) {
  const doctor::Launch& launch = facts.launch;
  if (launch.script.empty()) return material->missing.push_back("the script: no launch line names it");
  if (launch.script_text.empty())
    return material->missing.push_back(launch.script + ": it cannot be read here");
  std::size_t lines = lines_in(launch.script_text);
  if (lines <= kShortScript) {
    material->sections.push_back({"Script", "", "script.py", launch.script_text, "python", false});
    return;
  }
  material->sections.push_back({"Script",
                                "`" + launch.script + "`, " + std::to_string(lines) +
                                    " lines: not put in. A script of at most 50 lines that shows the same is "
                                    "what helps most.",
                                "", "", "", false});
}

// As the engine got it, else the file.
void add_config(const RecordedJob* job, doctor::Facts* facts, Material* material) {
  const std::string noted = job ? job->whole("deepspeed.config") : "";
  const std::string beginning = job ? job->beginning("deepspeed.config") : "";
  bool whole = !noted.empty();
  if (whole && !facts->config) facts->config = doctor::Config{"ds_config", doctor::read_document(noted)};
  std::string text, note;
  if (whole) {
    doctor::Document document = doctor::read_document(noted);
    text = document.error.empty() ? document.value.dump(2) : noted;
    note = "As DeepSpeed's engine got it.";
  } else if (facts->config && !facts->config->path.empty()) {
    text = facts->config->content;
    note = "`" + facts->config->path + "`";
  } else if (!beginning.empty()) {
    text = beginning;
    note = "As DeepSpeed's engine got it; its end was too long to be recorded.";
  }
  if (text.empty())
    return material->missing.push_back(
        "ds_config: neither the job's files nor a launch line tell it (--config FILE)");
  material->sections.push_back({"ds_config", note, "ds_config.json", text, "json", false});
}

void add_arguments(const RecordedJob* job, const doctor::Facts& facts, Material* material) {
  const std::string noted = job ? job->whole("hf.arguments") : "";
  const std::string beginning = job ? job->beginning("hf.arguments") : "";
  bool used = facts.trainer == doctor::Trainer::kHf || (job && !job->fact("version.transformers").empty());
  if (!noted.empty()) {
    doctor::Document document = doctor::read_document(noted);
    std::string text = document.error.empty() ? document.value.dump(2) : noted;
    material->sections.push_back({"TrainingArguments", "Those that differ from their defaults.",
                                  "training_arguments.json", text, "json", false});
  } else if (!beginning.empty()) {
    material->sections.push_back(
        {"TrainingArguments", "Those that differ from their defaults; their end was too long to be recorded.",
         "training_arguments.json", beginning, "json", false});
  } else if (used) {
    material->missing.push_back(
        "TrainingArguments: they were not recorded; add print(args.to_json_string())");
  }
}

void add_errors(const RecordedJob* job, const std::vector<std::string>& logs, Material* material) {
  if (job && !job->exceptions.empty()) {
    std::string text;
    for (const std::string& one : job->exceptions) text += one + "\n";
    material->sections.push_back(
        {"Exceptions", "Recorded in the ranks, the first one first.", "exceptions.txt", text, "text", false});
  }
  std::string text;
  for (const std::string& path : logs) {
    job::InputStream file(path);
    int left_out = 0;
    for (const Traceback& one : tracebacks_of(file, kMostTracebacks, &left_out)) {
      if (!one.first.empty()) text += one.first.substr(0, one.first.find_last_not_of(' ') + 1) + "\n";
      text += one.text + (one.times > 1 ? "(" + std::to_string(one.times) + " times)\n\n" : "\n");
    }
    if (left_out > 0) text += std::to_string(left_out) + " more tracebacks in " + path + "\n";
    if (text.empty()) material->missing.push_back("tracebacks: " + path + " holds none");
  }
  if (!text.empty()) material->sections.push_back({"Tracebacks", "", "tracebacks.txt", text, "text", false});
  if (logs.empty()) material->missing.push_back("tracebacks: give the job's output with --log FILE");
}

bool is_of_a_job(const std::string& name) {
  constexpr const char* kPrefixes[] = {
      "NCCL_",         "TORCH",       "PYTORCH_", "CUDA",   "DS_",    "DEEPSPEED_",
      "DSHANG_",       "GLOO_",       "UCX_",     "FI_",    "OMP_",   "MKL_",
      "HF_",           "WANDB_",      "SLURM_N",  "NVIDIA", "LOCAL_", "OMPI_COMM_WORLD_",
      "TRANSFORMERS_", "ACCELERATE_", "PYTHON",   "MASTER_"};
  constexpr const char* kNames[] = {
      "RANK", "WORLD_SIZE", "LD_PRELOAD", "LD_LIBRARY_PATH", "CONDA_DEFAULT_ENV", "VIRTUAL_ENV"};
  auto begins = [&](const char* prefix) { return name.starts_with(prefix); };
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes), begins) ||
         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

const std::string& RecordedJob::fact(const std::string& key) const {
  auto found = facts.find(key);
  return found == facts.end() ? kUnknown : found->second;
}

std::string RecordedJob::whole(const std::string& key) const {
  return job::whole_text(key, [&](const std::string& one) -> const std::string& { return fact(one); });
}

std::string RecordedJob::beginning(const std::string& key) const {
  return job::cut_text(key, [&](const std::string& one) -> const std::string& { return fact(one); });
}

void add_job(const RecordedJob* job, doctor::Facts* facts, const std::vector<std::string>& logs,
             Material* material) {
  add_report(job, material);
  add_launch(job, *facts, material);
  add_script(*facts, material);
  add_config(job, facts, material);
  add_arguments(job, *facts, material);
  add_errors(job, logs, material);
}

void add_environment(const RecordedJob* job, const doctor::Facts& facts, Redactor* redactor,
                     Material* material) {
  constexpr std::string_view kRecorded = "env.";
  std::map<std::string, std::string> shown;
  for (const auto& [name, value] : facts.environment) {
    redactor->learn_value(name, value);
    if (is_of_a_job(name)) shown[name] = value;
  }
  bool recorded = false;
  for (const auto& [key, value] : job ? job->facts : std::map<std::string, std::string>()) {
    if (!key.starts_with(kRecorded)) continue;
    if (!recorded) shown.clear();
    recorded = true;
    shown[key.substr(kRecorded.size())] = value;
  }
  std::string text;
  for (const auto& [name, value] : shown)
    text += name + "=" + redactor->clean_value(name, value, "Environment") + "\n";
  std::string note = recorded ? "Of the job's first rank." : "Of the shell in which this was made.";
  if (!text.empty())
    material->sections.push_back({"Environment", note, "environment.txt", text, "text", false});
}

}  // namespace dshang::issue
