#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "core/job/dump.h"
#include "core/job/report.h"
#include "core/job/report_html.h"
#include "core/job/report_perfetto.h"
#include "monitor/cli/commands.h"
#include "monitor/cli/page_file.h"
#include "monitor/recorder_files.h"
#include "monitor/replay.h"
#include "monitor/warnings.h"

namespace dshang::monitor::cli {
namespace {

struct Options {
  std::vector<std::string> directories;
  std::string perfetto;         // where to write such a trace, "" = not
  std::string flight_recorder;  // where to write such dumps, "" = not
  bool json = false, html = false, dump = false;
};

// What is set now and does not count: the job is told with the settings that it had.
void say_settings() {
  constexpr const char* kStallAfter = "DSHANG_STALL_AFTER";
  for (const std::string& line : environment_warnings(library_path())) {
    if (!line.starts_with(kStallAfter)) std::fprintf(stderr, "dshang: %s\n", line.c_str());
  }
  if (std::getenv(kStallAfter)) {
    std::fprintf(stderr, "dshang: %s has no effect here: a report uses the one that the job had\n",
                 kStallAfter);
  }
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int write_trace(const job::Job& job, const job::Report& report, const std::string& path) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  std::uint64_t left_out = job::write_perfetto(job, report, out);
  if (!out.flush()) return bad_input(path + ": it could not be written");
  if (left_out > 0)
    std::fprintf(stderr, "dshang: the %llu oldest records are not in it\n",
                 static_cast<unsigned long long>(left_out));
  return 0;
}

void export_dumps(const Replay& replayed, const std::string& directory) {
  for (const std::string& line : write_recorder_dumps(*replayed.job, directory)) {
    std::fprintf(stderr, "dshang: %s\n", line.c_str());
  }
}

int run(const Options& options) {
  Replay replayed = replay(options.directories);
  say_settings();
  if (options.dump) {
    for (const auto& process : replayed.job->processes)
      print(job::dump(process->records, replayed.job->names));
    return 0;
  }
  if (!options.flight_recorder.empty()) export_dumps(replayed, options.flight_recorder);
  job::FindingHistory history;
  job::Report report = repeat(replayed, &history);
  if (options.html)
    print(write_page(options.directories.front(), job::html_of(*replayed.job, report)) + "\n");
  if (!options.perfetto.empty()) return write_trace(*replayed.job, report, options.perfetto);
  if (!options.html) print(options.json ? job::json_of(report) : job::text_of(report));
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Run* chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* report = app.add_subcommand("report", "explain a job again, from its files");
  report
      ->add_option("DIR", options->directories,
                   "DSHANG_DIR of the job, one of its attempts, or several nodes' ones; or folders of PyTorch "
                   "Flight Recorder dumps")
      ->required()
      ->check(not_empty());
  report->add_flag("--json", options->json, "as report.json");
  report->add_flag("--html", options->html, "writes report.html into DIR: with timeline, stacks and memory");
  report
      ->add_option("--perfetto", options->perfetto, "writes a trace for https://ui.perfetto.dev to this file")
      ->type_name("FILE")
      ->check(not_empty());
  report->add_flag("--dump", options->dump, "the records themselves, readable");
  report
      ->add_option("--flight-recorder", options->flight_recorder,
                   "also write the job into this new folder as PyTorch Flight Recorder dumps")
      ->check(not_empty());
  report->callback([chosen, options] { *chosen = [options] { return run(*options); }; });
}

}  // namespace dshang::monitor::cli
