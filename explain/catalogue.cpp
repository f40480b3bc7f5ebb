#include "explain/catalogue.h"

#include <re2/re2.h>

#include <stdexcept>

namespace dshang::explain {
namespace {

constexpr struct {
  const char* word;
  Sense sense;
} kWords[] = {
    {"Traceback (most recent call last)", Sense::kTraceback},
    {"  File \"", Sense::kTraceback},
    {"he above exception", Sense::kTraceback},
    {"Exception ignored in", Sense::kTraceback},
    {"loss", Sense::kLoss},
    {"grad_norm", Sense::kGradNorm},
    {"[deepspeed] OVERFLOW!", Sense::kOverflow},
    {"step", Sense::kStep},
    {"Step", Sense::kStep},
    {"it/s", Sense::kBar},
    {"s/it", Sense::kBar},
    {"NCCL INFO Using network", Sense::kNccl},
    {"NET/IB : No device found", Sense::kNccl},
    {"NCCL_IB_DISABLE set by environment", Sense::kNccl},
    {" Init START", Sense::kNccl},
    {" Init COMPLETE", Sense::kNccl},
    {" nNodes ", Sense::kNccl},
    {" via P2P", Sense::kNccl},
    {" via SHM", Sense::kNccl},
    {" via NET/", Sense::kNccl},
    {" coll channels", Sense::kNccl},
    {"NCCL version ", Sense::kNccl},
    {"Watchdog caught collective operation timeout: WorkNCCL(", Sense::kTimeout},
    {"last enqueued NCCL work: ", Sense::kTimeoutGroup},
    {"PG status: last enqueued work: ", Sense::kTimeoutGroup},
    {"CUDA out of memory. Tried to allocate", Sense::kOutOfMemory},
    {"world size", Sense::kWorldSize},
    {"world_size", Sense::kWorldSize},
    {"WORLD_SIZE", Sense::kWorldSize},
    {" (local_rank: ", Sense::kFailedRank},
    {"] Killing subprocess ", Sense::kOthersEnded},
    {" closing signal SIG", Sense::kOthersEnded},
    {"Root Cause (first observed failure)", Sense::kOthersEnded},
    {"srun: Job step aborted: ", Sense::kOthersEnded},
    {"DeepSpeedEngine configuration:", Sense::kConfig},
    {"OffloadDeviceEnum.nvme", Sense::kConfigNvme},
    {"\"device\": \"nvme\"", Sense::kConfigNvme},
    {"muon", Sense::kMuon},
    {"Muon", Sense::kMuon},
    {"[rank", Sense::kSpeaker},
};

// How launchers say that a rank failed; those that say most first.
constexpr Pattern kRankFailed[] = {
    {R"(exits with return code = -?[1-9])"},
    {R"(failed \(exitcode: -?[1-9]\d*\) local_rank: \d+)"},
    {R"(^srun: error: .*\btasks? [\d,\- ]+: [A-Z])"},
    {R"(^pdsh@\S+: \S+: ssh exited with exit code [1-9])"},
    {R"((mpirun|mpiexec|prterun) (noticed|detected) that .*process.* exited )"},
    {R"(exitcode *: -?[1-9]\d* +\(pid: \d+\))"},
    {R"(CalledProcessError: Command .* (returned non-zero exit status [1-9]|died with ))",
     R"(accelerate/commands/launch\.py)"},
};

}  // namespace

bool matches(const re2::RE2& regex, std::string_view text) {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), regex);
}

Catalogue::Catalogue() {
  for (const auto& [word, sense] : kWords) use(word, {sense});
  for (const Entries& (*theme)() :
       {config_entries, precision_entries, build_entries, launch_entries, network_entries, number_entries,
        memory_entries, checkpoint_entries, zero_entries, training_entries, inference_entries,
        watchdog_entries, process_entries}) {
    for (const Entry& entry : theme()) {
      entries_.push_back(&entry);
      for (std::size_t i = 0; i < entry.patterns.size(); ++i) {
        const Pattern& pattern = entry.patterns[i];
        std::string word = required_literal(pattern.regex);
        bool all = word == pattern.regex;
        use(word, {Sense::kEntry, &entry, all ? nullptr : compiled(pattern.regex),
                   pattern.frame ? compiled(pattern.frame) : nullptr, static_cast<int>(i)});
      }
    }
  }
  int place = 0;
  for (const Pattern& pattern : kRankFailed)
    use(required_literal(pattern.regex), {Sense::kRankFailed, nullptr, compiled(pattern.regex),
                                          pattern.frame ? compiled(pattern.frame) : nullptr, place++});
  literals_ = std::make_unique<Literals>(words_);
}

Catalogue::~Catalogue() = default;

const Catalogue& Catalogue::shared() {
  static const Catalogue catalogue;
  return catalogue;
}

void Catalogue::use(const std::string& word, Use use) {
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if (words_[i] == word) return uses_[i].push_back(use);
  }
  words_.push_back(word);
  uses_.push_back({use});
}

const re2::RE2* Catalogue::compiled(const char* regex) {
  re2::RE2::Options options;
  options.set_encoding(re2::RE2::Options::EncodingLatin1);
  options.set_log_errors(false);
  regexes_.push_back(std::make_unique<re2::RE2>(regex, options));
  if (!regexes_.back()->ok()) throw std::logic_error("no regular expression: " + std::string(regex));
  return regexes_.back().get();
}

const Entry* Catalogue::find(std::string_view id) const {
  for (const Entry* entry : entries_) {
    if (id == entry->id) return entry;
  }
  return nullptr;
}

const char* severity_words(Severity severity) {
  constexpr const char* kWords[] = {"will fail", "will hang", "wrong result", "slow", "advice"};
  return kWords[static_cast<int>(severity)];
}

const char* report_severity(Severity severity) {
  constexpr const char* kWords[] = {"error", "hang", "error", "warning", "info"};
  return kWords[static_cast<int>(severity)];
}

}  // namespace dshang::explain
