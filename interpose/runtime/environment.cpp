#include "interpose/runtime/environment.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/rank/job_id.h"

namespace dshang::interpose {
namespace {

bool starts_with(const char* text, const char* with) { return strncmp(text, with, strlen(with)) == 0; }

// The value if `entry` is "name=value", else null.
const char* value_of(const char* entry, const char* name) {
  std::size_t length = strlen(name);
  return strncmp(entry, name, length) == 0 && entry[length] == '=' ? entry + length + 1 : nullptr;
}

constexpr const char* kRecordedPrefixes[] = {"DSHANG_", "NCCL_", "TORCH_NCCL_", "TORCH_FR_", "TORCHELASTIC_"};
constexpr const char* kRecordedNames[] = {"RANK",
                                          "LOCAL_RANK",
                                          "WORLD_SIZE",
                                          "LOCAL_WORLD_SIZE",
                                          "MASTER_ADDR",
                                          "MASTER_PORT",
                                          "DEEPSPEED_TIMEOUT",
                                          "SLURM_JOB_ID",
                                          "SLURM_STEP_ID",
                                          "SLURM_PROCID",
                                          "SLURM_NODEID",
                                          "SLURM_NNODES",
                                          "OMPI_COMM_WORLD_RANK",
                                          "PYTORCH_CUDA_ALLOC_CONF",
                                          "PYTORCH_ALLOC_CONF",
                                          "CUDA_VISIBLE_DEVICES",
                                          "CUDA_LAUNCH_BLOCKING",
                                          "CUDA_DEVICE_MAX_CONNECTIONS",
                                          "TORCH_DIST_USE_NCCL2",
                                          "PYTHONHASHSEED",
                                          "OMP_NUM_THREADS"};
constexpr const char* kSecretWords[] = {"SECRET", "TOKEN", "PASSWORD", "API_KEY"};

bool is_recorded(const char* name) {
  for (const char* word : kSecretWords) {
    if (strstr(name, word)) return false;
  }
  for (const char* prefix : kRecordedPrefixes) {
    if (starts_with(name, prefix)) return true;
  }
  for (const char* known : kRecordedNames) {
    if (strcmp(name, known) == 0) return true;
  }
  return false;
}

// Decimal digits only; strtol() is a different symbol in newer libc headers.
bool parse_number(const char* text, std::int32_t* value) {
  if (!text || !*text) return false;
  std::int64_t n = 0;
  for (; *text; ++text) {
    if (*text < '0' || *text > '9') return false;
    n = n * 10 + (*text - '0');
    if (n > INT32_MAX) return false;
  }
  *value = static_cast<std::int32_t>(n);
  return true;
}

// The first of the variables that holds a number.
std::int32_t first_number(const char* const* names, std::int32_t fallback) {
  for (; *names; ++names) {
    std::int32_t value;
    if (parse_number(getenv(*names), &value)) return value;
  }
  return fallback;
}

std::uint64_t clock_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return std::uint64_t(t.tv_sec) * 1000000000u + std::uint64_t(t.tv_nsec);
}

}  // namespace

bool Environment::copy_now() {
  std::size_t count = 0, bytes = 0;
  for (char** at = environ; at && *at; ++at, ++count) bytes += strlen(*at) + 1;
  std::size_t table = (count + 1) * sizeof(char*);
  void* memory = mmap(nullptr, table + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  char** out = static_cast<char**>(memory);
  char* text = static_cast<char*>(memory) + table;
  char* end = text + bytes;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count && environ[i]; ++i) {
    if (value_of(environ[i], "LD_PRELOAD")) continue;
    std::size_t length = strlen(environ[i]) + 1;
    if (length > static_cast<std::size_t>(end - text)) break;  // grew under our hands
    memcpy(text, environ[i], length);
    out[kept++] = text;
    text += length;
  }
  out[kept] = nullptr;
  entries_ = out;
  return true;
}

const char* Environment::find(const char* name) const {
  for (char** at = entries_; at && *at; ++at) {
    if (const char* value = value_of(*at, name)) return value;
  }
  return nullptr;
}

void Environment::record(const flight::Writer& writer) const {
  constexpr std::size_t kLongestName = 120;
  for (char** at = entries_; at && *at; ++at) {
    const char* equals = strchr(*at, '=');
    if (!equals || static_cast<std::size_t>(equals - *at) > kLongestName) continue;
    char key[kLongestName + 8] = "env.";
    memcpy(key + 4, *at, static_cast<std::size_t>(equals - *at));
    if (is_recorded(key + 4)) writer.fact(key, equals + 1);
  }
}

flight::Identity identity_of_this_process() {
  static const char* const kRank[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", nullptr};
  static const char* const kLocalRank[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID",
                                           nullptr};
  static const char* const kWorldSize[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", nullptr};
  static const char* const kRestart[] = {"TORCHELASTIC_RESTART_COUNT", nullptr};
  rank::JobParts parts = rank::job_parts_of_this_process();
  flight::Identity identity;
  identity.rank = first_number(kRank, -1);
  identity.local_rank = first_number(kLocalRank, -1);
  identity.world_size = first_number(kWorldSize, 0);
  identity.restart_count = first_number(kRestart, 0);
  identity.job = rank::job_id(parts);
  identity.net_namespace = parts.net_namespace;
  identity.pid_namespace = parts.pid_namespace;
  identity.start_ns = clock_ns(CLOCK_MONOTONIC);
  identity.start_real_ns = clock_ns(CLOCK_REALTIME);
  return identity;
}

}  // namespace dshang::interpose
