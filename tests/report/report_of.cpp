// report_of html|json|perfetto SNAPSHOT.txt: what dshang would write of a job with these records, on standard
// output.
//
// SNAPSHOT.txt is as `dshang report --dump` prints it; SNAPSHOT.journal beside it, if there, what the monitor
// saw.
#include <cstdio>
#include <iostream>

#include "core/job/report_html.h"
#include "core/job/report_perfetto.h"
#include "detectors/run.h"
#include "tests/unit/snapshot.h"

using namespace dshang;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  job::Job job;
  std::string error = snapshot::fill(job, argv[2]);
  if (!error.empty()) {
    std::fprintf(stderr, "%s: %s\n", argv[2], error.c_str());
    return 2;
  }
  job::FindingHistory history;
  bool has_news = false;
  job::Report report = history.update(job, detect::analyse(job), &has_news);
  std::string form = argv[1];
  if (form == "perfetto") {
    job::write_perfetto(job, report, std::cout);
  } else {
    std::cout << (form == "html" ? job::html_of(job, report) : job::json_of(report));
  }
  return std::cout.flush() ? 0 : 1;
}
