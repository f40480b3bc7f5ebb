#include "core/job/journal.h"

#include <algorithm>
#include <istream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace dshang::job {
namespace {

using Json = nlohmann::ordered_json;

Json key_of(const ProcessJournal& process) {
  return {{"pid", process.pid}, {"ticks", process.pid_start_ticks}};
}

// Paths, host names and settings may be no valid UTF-8: that must not cost the line.
std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

template <typename T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

template <typename T>
std::optional<T> get(const Json& json, const char* key) {
  if (!json.contains(key)) return std::nullopt;
  return json.at(key).get<T>();
}

const char* text_of(EndingKnown known) {
  switch (known) {
    case EndingKnown::kRecord:
      return "record";
    case EndingKnown::kStatus:
      return "status";
    case EndingKnown::kNo:
      break;
  }
  return "no";
}

EndingKnown known_of(const std::string& text) {
  if (text == "record") return EndingKnown::kRecord;
  if (text == "status") return EndingKnown::kStatus;
  if (text == "no") return EndingKnown::kNo;
  throw std::runtime_error("\"known\" is \"" + text + "\", allowed are record, status, no");
}

ProcessJournal& process_of(Journal& journal, const Json& json) {
  auto pid = json.at("pid").get<std::int32_t>();
  auto ticks = json.at("ticks").get<std::uint64_t>();
  for (ProcessJournal& process : journal.processes) {
    if (process.pid == pid && process.pid_start_ticks == ticks) return process;
  }
  ProcessJournal process;
  process.pid = pid;
  process.pid_start_ticks = ticks;
  journal.processes.push_back(std::move(process));
  return journal.processes.back();
}

void read_start(Journal& journal, const Json& json) {
  journal.start_ns = json.at("start_ns");
  journal.start_real_ns = json.at("start_real_ns");
  journal.host = json.at("host");
  journal.dir = json.at("dir");
  journal.attempt = json.at("attempt");
  journal.parameters = json.at("parameters").get<std::vector<std::string>>();
}

void read_death(ProcessJournal& process, const Json& json) {
  Death death;
  death.time_ns = json.at("at_ns");
  death.known = known_of(json.at("known"));
  death.by_signal = json.at("by_signal");
  death.code = json.at("code");
  death.oom_kills = json.value("oom_kills", std::uint64_t{0});
  death.memory_limit = json.value("memory_limit", std::uint64_t{0});
  death.limit_is_of_group = json.value("limit_is_of_group", false);
  process.death = death;
}

HostSample sample_of(const Json& json) {
  HostSample sample;
  sample.time_ns = json.at("at_ns");
  sample.cpu_seconds = get<double>(json, "cpu");
  sample.other_cpu_seconds = get<double>(json, "other_cpu");
  sample.read_bytes = get<std::uint64_t>(json, "read");
  sample.written_bytes = get<std::uint64_t>(json, "written");
  sample.state = json.value("state", std::string("?")).at(0);
  sample.wchan = json.value("wchan", "");
  sample.syscall = json.value("syscall", "");
  sample.rss_bytes = get<std::uint64_t>(json, "rss");
  sample.graph_launches = json.value("graphs", std::uint64_t{0});
  return sample;
}

void read_line(Journal& journal, const Json& json) {
  const std::string news = json.at("news");
  if (news == "start") return read_start(journal, json);
  if (news == "time") {
    journal.now_ns = json.at("now_ns");
    return;
  }
  if (news == "end") {
    journal.has_end = true;
    return;
  }
  ProcessJournal& process = process_of(journal, json);
  if (news == "attach") {
    process.attach_ns = json.at("at_ns");
  } else if (news == "death") {
    read_death(process, json);
  } else if (news == "sample") {
    process.samples.push_back(sample_of(json));
    if (process.samples.size() > kSamplesKept) process.samples.erase(process.samples.begin());
  }
  // Other news are of a later version: they add, and take nothing away.
}

}  // namespace

std::string line_of_start(const Journal& journal) {
  return line_of(Json{{"news", "start"},
                      {"start_ns", journal.start_ns},
                      {"start_real_ns", journal.start_real_ns},
                      {"host", journal.host},
                      {"dir", journal.dir},
                      {"attempt", journal.attempt},
                      {"parameters", journal.parameters}});
}

std::string line_of_attach(const ProcessJournal& process) {
  Json json{{"news", "attach"}};
  json.update(key_of(process));
  json["at_ns"] = process.attach_ns;
  return line_of(json);
}

std::string line_of_death(const ProcessJournal& process) {
  if (!process.death) return {};
  Json json{{"news", "death"}};
  json.update(key_of(process));
  json["at_ns"] = process.death->time_ns;
  json["known"] = text_of(process.death->known);
  json["by_signal"] = process.death->by_signal;
  json["code"] = process.death->code;
  if (process.death->oom_kills) json["oom_kills"] = process.death->oom_kills;
  if (process.death->memory_limit) json["memory_limit"] = process.death->memory_limit;
  if (process.death->limit_is_of_group) json["limit_is_of_group"] = true;
  return line_of(json);
}

std::string line_of_sample(const ProcessJournal& process, const HostSample& sample) {
  Json json{{"news", "sample"}};
  json.update(key_of(process));
  json["at_ns"] = sample.time_ns;
  put(json, "cpu", sample.cpu_seconds);
  put(json, "other_cpu", sample.other_cpu_seconds);
  put(json, "read", sample.read_bytes);
  put(json, "written", sample.written_bytes);
  json["state"] = std::string(1, sample.state);
  if (!sample.wchan.empty()) json["wchan"] = sample.wchan;
  if (!sample.syscall.empty()) json["syscall"] = sample.syscall;
  put(json, "rss", sample.rss_bytes);
  if (sample.graph_launches) json["graphs"] = sample.graph_launches;
  return line_of(json);
}

std::string line_of_time(std::uint64_t now_ns) { return line_of(Json{{"news", "time"}, {"now_ns", now_ns}}); }

std::string line_of_end() { return line_of(Json{{"news", "end"}}); }

Journal read_journal(std::istream& in) {
  Journal journal;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    bool cut_short = in.eof();  // the monitor was killed while it wrote the last line
    try {
      read_line(journal, Json::parse(line));
    } catch (const std::exception& error) {
      if (cut_short) break;
      throw std::runtime_error("line " + std::to_string(number) + ": " + error.what());
    }
  }
  return journal;
}

}  // namespace dshang::job
