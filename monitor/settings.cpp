#include "monitor/settings.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/rank/param.h"
#include "monitor/clock.h"

namespace dshang::monitor {
namespace {

DSHANG_PARAM(string, DIR, "", "a path", "where reports and flight files go; not set: ./dshang-<job>-<time>");
DSHANG_PARAM(seconds, POLL, "0.05", "0.005..5", "seconds between two looks of the monitor at flight memory");
DSHANG_PARAM(seconds, PERSIST, "2", "0.1..3600",
             "seconds between copies of changed flight memory to node-local disk");

DSHANG_PARAM(seconds, STALL_AFTER, "30", "0.1..86400",
             "seconds without progress after which a judged finding may be made");
DSHANG_PARAM(percent_or_bytes, MEMORY_HEADROOM, "5%", "0%..100%",
             "device memory that a step should leave free (percent of the device or bytes)");
DSHANG_PARAM(
    string, SITE_SKIP, "", "comma-separated file name endings",
    "the user's own wrapper modules: the call site is the first frame outside torch, DeepSpeed and these");

std::uint64_t nanoseconds(double seconds) { return static_cast<std::uint64_t>(seconds * 1e9); }

// What the analysis is told (core/job/params.h), as it is in effect: a value out of its range is the default.
std::vector<std::string> analysis_parameters() {
  char stall_after[64];
  std::snprintf(stall_after, sizeof stall_after, "DSHANG_STALL_AFTER=%g", param_STALL_AFTER.value());
  char headroom[64];
  rank::PercentOrBytes value = param_MEMORY_HEADROOM.value();
  if (value.is_percent) {
    std::snprintf(headroom, sizeof headroom, "DSHANG_MEMORY_HEADROOM=%g%%", value.percent);
  } else {
    std::snprintf(headroom, sizeof headroom, "DSHANG_MEMORY_HEADROOM=%llu",
                  static_cast<unsigned long long>(value.bytes));
  }
  return {std::string("DSHANG_SITE_SKIP=") + param_SITE_SKIP.value(), stall_after, headroom};
}

std::int32_t number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  std::int32_t value = -1;
  if (text) {
    auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
    if (error != std::errc() || *end) value = -1;
  }
  return value;
}

// torchrun, DeepSpeed's launcher, Slurm.
std::int32_t node_number() {
  for (const char* name : {"GROUP_RANK", "CROSS_RANK", "SLURM_NODEID"}) {
    std::int32_t value = number_in_environment(name);
    if (value >= 0) return value;
  }
  return -1;
}

std::string time_text() {
  time_t now = time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
  return text;
}

}  // namespace

std::string job_text(std::uint64_t job) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(job));
  return text;
}

std::string spool_of_user(std::uint32_t user) {
  const char* temporary = std::getenv("TMPDIR");
  return std::string(temporary && *temporary == '/' ? temporary : "/tmp") + "/dshang-" + std::to_string(user);
}

Settings read_settings(std::uint64_t job) {
  Settings settings;
  settings.job = job;
  settings.user = getuid();
  char host[65] = "";
  gethostname(host, sizeof host - 1);
  settings.host = *host ? host : "localhost";
  std::string given = param_DIR.value();
  settings.directory_given = !given.empty();
  if (given.empty()) given = "dshang-" + job_text(job) + "-" + time_text();
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(given, error).lexically_normal();
  settings.directory = error ? given : absolute.string();
  while (settings.directory.size() > 1 && settings.directory.back() == '/') settings.directory.pop_back();
  settings.spool = spool_of_user(settings.user) + "/" + job_text(job);
  settings.poll_ns = nanoseconds(param_POLL.value());
  settings.persist_ns = nanoseconds(param_PERSIST.value());
  settings.parameters = analysis_parameters();
  settings.node = node_number();
  return settings;
}

}  // namespace dshang::monitor
