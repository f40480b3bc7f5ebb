// Golden tests: readable snapshots in, report out.
//
// tests/golden/<class>/<case>.txt     the records of all ranks, as `dshang report --dump` prints them
// tests/golden/<class>/<case>.journal (may be missing) what the monitor saw: one JSON object a line (core/job/journal.h)
// tests/golden/<class>/<case>.report  the text report that must come out
//
// A snapshot's last time is "now" unless the journal says otherwise.  DSHANG_UPDATE_GOLDEN=1 writes the reports anew;
// read the difference before you commit it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "catch.h"
#include "detectors/registry.h"
#include "detectors/run.h"
#include "tests/unit/snapshot.h"

namespace {

namespace fs = std::filesystem;
using namespace dshang;

using snapshot::read;

std::string report_of(const fs::path& path) {
  job::Job job;
  REQUIRE(snapshot::fill(job, path) == "");
  job::FindingHistory history;
  bool has_news = false;
  return job::text_of(history.update(job, detect::analyse(job), &has_news));
}

std::vector<fs::path> snapshots() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(DSHANG_GOLDEN_DIR)) {
    if (entry.path().extension() == ".txt" && entry.path().parent_path() != DSHANG_GOLDEN_DIR) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

TEST_CASE("every snapshot gives its report", "[golden]") {
  bool update = std::getenv("DSHANG_UPDATE_GOLDEN") != nullptr;
  for (const fs::path& snapshot : snapshots()) {
    INFO(snapshot.string());
    fs::path expected = snapshot;
    expected.replace_extension(".report");
    std::string report = report_of(snapshot);
    CHECK(report == report_of(snapshot));  // same input, same report
    if (update) std::ofstream(expected) << report;
    CHECK(report == read(expected));
  }
}

TEST_CASE("every class has a golden folder that finds it, and `healthy` finds nothing", "[golden]") {
  std::set<std::string> types;
  for (const auto& explainer : detect::Registry::explainers()) types.insert(explainer.type);
  for (const auto& detector : detect::Registry::detectors()) {
    if (std::string(detector.type) != "parted") types.insert(detector.type);  // it asks the explainers
  }
  REQUIRE(types.size() >= 12);
  for (const std::string& type : types) {
    INFO("no snapshot in tests/golden/" << type << " whose report finds it");
    bool found = false;
    for (const fs::path& snapshot : snapshots()) {
      if (snapshot.parent_path().filename() == type) found = found || report_of(snapshot).find("[" + type + "]") != std::string::npos;
    }
    CHECK(found);
  }
  bool any_healthy = false;
  for (const fs::path& snapshot : snapshots()) {
    if (snapshot.parent_path().filename() != "healthy") continue;
    any_healthy = true;
    INFO(snapshot.string());
    CHECK(report_of(snapshot).find("nothing was found") != std::string::npos);
  }
  CHECK(any_healthy);
}
