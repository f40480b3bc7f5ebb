#include <pwd.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/flight/hash.h"
#include "doctor/command.h"
#include "doctor/measure.h"
#include "launch/env_file.h"
#include "launch/plan.h"
#include "monitor/cli/commands.h"
#include "monitor/settings.h"

namespace dshang::monitor::cli {
namespace {

constexpr int kNotFound = 127;

struct Options {
  std::vector<std::string> command;
  std::string hostfile;
  bool check = false, show = false, dlsym = false;
};

void say(const std::string& text) { std::fprintf(stderr, "dshang: run: %s\n", text.c_str()); }

int refuse(const std::string& text) { return bad_input("run: " + text); }

std::string home() {
  const char* named = std::getenv("HOME");
  if (named && *named) return named;
  const passwd* entry = getpwuid(getuid());
  return entry ? entry->pw_dir : "";
}

// As a monitor would call it; host and process stand for the job's number, which is not known yet.
std::string new_folder(const std::string& parent) {
  char host[65] = "", text[96];
  gethostname(host, sizeof host - 1);
  time_t now = time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  const std::string unique = std::string(host) + " " + std::to_string(getpid()) + " " + std::to_string(now);
  std::snprintf(
      text, sizeof text, "/dshang-%016llx-",
      static_cast<unsigned long long>(flight::fnv1a(unique.data(), unique.size(), flight::kFnvOffset)));
  std::size_t length = std::strlen(text);
  strftime(text + length, sizeof text - length, "%Y%m%d-%H%M%S", &parts);
  return parent + text;
}

std::string in_quotes(const std::string& word) {
  bool plain = !word.empty() && word.find_first_not_of(
                                    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789_-+=:,./@%") == std::string::npos;
  if (plain) return word;
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

int show(const launch::Plan& plan) {
  std::string text = "by " + plan.way + "\n";
  for (const auto& [name, value] : plan.environment) text += name + "=" + value + "\n";
  if (plan.env_file) text += "a file that DS_ENV_FILE names, with\n" + *plan.env_file;
  std::string command;
  for (const std::string& word : plan.command) command += (command.empty() ? "" : " ") + in_quotes(word);
  std::printf("%s%s\n", text.c_str(), command.c_str());
  return 0;
}

// 0: the library is the same everywhere.
int check_one(const launch::Nodes& nodes, const std::string& library) {
  std::vector<std::string> wrong = launch::check_library(nodes, library);
  for (const std::string& line : wrong) say(line);
  if (!wrong.empty()) return 2;
  std::size_t count = launch::hosts_of(nodes).size();
  say(library + " is the same on " + std::to_string(count) + (count == 1 ? " node" : " nodes") + " of " +
      nodes.hostfile);
  return 0;
}

int check(const launch::Nodes& nodes, const launch::Place& place) {
  int status = check_one(nodes, place.library);
  return status != 0 || place.dlsym.empty() ? status : check_one(nodes, place.dlsym);
}

int start(const launch::Plan& plan) {
  for (const auto& [name, value] : plan.environment) setenv(name.c_str(), value.c_str(), 1);
  if (plan.env_file)
    setenv("DS_ENV_FILE", launch::write_env_file(spool_of_user(getuid()), *plan.env_file).c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : plan.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  say(std::string("cannot start ") + words[0] + ": " + std::strerror(errno));
  return kNotFound;
}

int run(const Options& options) {
  const std::string library = library_path();
  if (library.empty()) return refuse("libdshang.so is not where this program expects it");
  const std::string dlsym = options.dlsym ? dlsym_path() : "";
  if (options.dlsym && dlsym.empty())
    return refuse("libdshang_dlsym.so is not where this program expects it");
  const std::string folder = std::filesystem::current_path().string();
  launch::Place place{doctor::own_environment(),
                      library,
                      home(),
                      folder,
                      new_folder(folder),
                      [](const std::string& program) {
                        return doctor::output_of({program, "--version"}, 10);
                      },
                      dlsym};
  std::string error;
  std::optional<launch::Plan> plan = launch::make_plan(place, options.command, &error);
  if (!plan) return refuse(error);
  for (const std::string& remark : plan->remarks) say(remark);
  if (!options.hostfile.empty()) {
    if (!plan->nodes) plan->nodes.emplace();
    plan->nodes->hostfile = options.hostfile;
  }
  if (options.check && !plan->nodes)
    return refuse("--check: the command names no hostfile; --hostfile FILE says which nodes are meant");
  if (options.check && check(*plan->nodes, place) != 0) return 2;
  return options.show ? show(*plan) : start(*plan);
}

}  // namespace

void add_run(CLI::App& app, Run* chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "run", "start a launch command so that every rank on every node has the preload and DSHANG_*");
  verb->add_flag("--check", options->check,
                 "first ask every node of the hostfile, over ssh, whether the library is there");
  verb->add_option("--hostfile", options->hostfile, "nodes for --check, where the command names none")
      ->check(not_empty());
  verb->add_flag("--dlsym", options->dlsym,
                 "preload libdshang_dlsym.so too: for programs that call NCCL through ctypes");
  verb->add_flag("--show", options->show, "print what would be set and started, and start nothing");
  verb->add_option("command", options->command, "the launch command, after --")->required();
  verb->positionals_at_end();
  verb->callback([options, chosen] { *chosen = [options] { return run(*options); }; });
}

}  // namespace dshang::monitor::cli
