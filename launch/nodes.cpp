#include "launch/nodes.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <sstream>
#include <stdexcept>

#include "doctor/command.h"
#include "doctor/facts_file.h"

namespace dshang::launch {
namespace {

constexpr double kPatience = 20;  // seconds for a host
constexpr const char* kMark = "dshang-fact ";
constexpr std::size_t kSum = 64;  // letters of a SHA-256

std::string shell_word(const std::string& text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

std::vector<std::string> words_in(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool has(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// Hosts of an --include or --exclude, with or without slots.
std::vector<std::string> named_in(const std::string& filter, bool with_slots) {
  std::vector<std::string> hosts;
  std::istringstream parts(filter);
  for (std::string part; std::getline(parts, part, '@');) {
    std::size_t colon = part.find(':');
    if (with_slots || colon == std::string::npos) hosts.push_back(part.substr(0, colon));
  }
  return hosts;
}

std::string last_line(const std::string& text) {
  std::string last;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && !line.starts_with(kMark)) last = line;
  }
  return last;
}

// The value behind a mark; "" where the node did not say it.
std::string fact(const std::string& said, const std::string& name) {
  std::istringstream lines(said);
  const std::string beginning = kMark + name + " ";
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(beginning)) return line.substr(beginning.size());
  }
  return "";
}

std::string sum_here(const std::string& library) {
  return doctor::output_of({"sha256sum", library}, kPatience).substr(0, kSum);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string user_name() {
  const passwd* entry = getpwuid(getuid());
  return entry ? entry->pw_name : "";
}

// Loading it into `true` is the proof: the loader says on stderr why it leaves a preload out.
std::string question(const std::string& library) {
  std::string file = shell_word(library), mark = std::string("echo \"") + kMark;
  return "if [ ! -r " + file + " ]; then " + mark + "there no\"; else " + mark + "there yes\"; " + mark +
         "sum $(sha256sum < " + file + ")\"; " + mark + "loader $(LD_PRELOAD=" + file +
         " sh -c true 2>&1 | head -n 1)\"; fi";
}

std::string judge(const std::string& host, const std::string& library, const std::string& sum,
                  const std::string& said, int status) {
  if (fact(said, "there").empty()) {
    std::string why = last_line(said);
    if (why.empty())
      why = status < 0 ? "no answer from ssh" : "ssh ended with status " + std::to_string(status);
    return host + " cannot be asked: " + why;
  }
  if (fact(said, "there") == "no") return library + " is not on " + host + ", or cannot be read there";
  if (std::string loader = fact(said, "loader"); !loader.empty())
    return library + " cannot be loaded on " + host + ": " + loader;
  if (fact(said, "sum").substr(0, kSum) != sum) return library + " is another file on " + host + " than here";
  return "";
}

}  // namespace

std::vector<std::string> hosts_of(const Nodes& nodes) {
  std::vector<std::string> hosts, included = named_in(nodes.include, true),
                                  excluded = named_in(nodes.exclude, false);
  for (const std::string& line : doctor::read_hostfile(nodes.hostfile).lines) {
    std::vector<std::string> words = words_in(line);
    if (words.empty() || words[0][0] == '#') continue;
    std::string host = words[0];
    // host:slots, in MPICH's machine files; an address of IPv6 has more colons.
    if (std::count(host.begin(), host.end(), ':') == 1) host.resize(host.find(':'));
    if (host[0] == '-') throw std::runtime_error(nodes.hostfile + ": '" + host + "' is no name of a host");
    bool wanted = (included.empty() || has(included, host)) && !has(excluded, host);
    if (wanted && !has(hosts, host)) hosts.push_back(host);
  }
  if (nodes.most > 0 && hosts.size() > static_cast<std::size_t>(nodes.most))
    hosts.resize(static_cast<std::size_t>(nodes.most));
  if (hosts.empty()) throw std::runtime_error(nodes.hostfile + " names no host that takes part");
  return hosts;
}

std::vector<std::string> ssh_words(const std::string& host, const std::string& command,
                                   const std::string& port, const std::string& pdsh_arguments,
                                   const std::string& appended, const std::string& user) {
  std::vector<std::string> words = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"};
  std::vector<std::string> more = words_in(appended);
  words.insert(words.end(), more.begin(), more.end());
  if (!port.empty()) words.insert(words.end(), {"-p", port});
  bool has_host = false;
  for (std::string word : words_in(pdsh_arguments)) {
    if (std::size_t at = word.find("%u"); at != std::string::npos) word.replace(at, 2, user);
    if (std::size_t at = word.find("%h"); at != std::string::npos) {
      word.replace(at, 2, host);
      has_host = true;
    }
    words.push_back(word);
  }
  if (!has_host) words.push_back(host);
  words.push_back(command);
  return words;
}

std::vector<std::string> check_library(const Nodes& nodes, const std::string& library) {
  const std::string sum = sum_here(library), asked = question(library), user = user_name();
  const std::string arguments = environment("PDSH_SSH_ARGS"), appended = environment("PDSH_SSH_ARGS_APPEND");
  auto ask = [&](const std::string& host) {
    int status = 0;
    std::string said = doctor::output_of(ssh_words(host, asked, nodes.ssh_port, arguments, appended, user),
                                         kPatience, &status);
    return judge(host, library, sum, said, status);
  };
  std::vector<std::future<std::string>> answers;
  for (const std::string& host : hosts_of(nodes))
    answers.push_back(std::async(std::launch::async, ask, host));
  std::vector<std::string> wrong;
  for (auto& answer : answers) {
    if (std::string line = answer.get(); !line.empty()) wrong.push_back(line);
  }
  return wrong;
}

}  // namespace dshang::launch
