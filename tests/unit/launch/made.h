// Plans for a library in /opt/dshang, in a folder of the test's own.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "launch/plan.h"
#include "tests/unit/catch.h"

namespace dshang::launch {

inline constexpr const char* kLibrary = "/opt/dshang/libdshang.so";

// A folder that goes with the test.
struct Folder {
  std::filesystem::path path;
  Folder() {
    char name[] = "/tmp/launch-test-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }
};

inline Place place_in(const Folder& folder, Variables environment = {}) {
  return {std::move(environment),
          kLibrary,
          (folder.path / "home").string(),
          folder.path.string(),
          "/jobs/dshang-new",
          [](const std::string&) { return std::string("mpirun (Open MPI) 4.1.4"); }};
}

inline Plan planned(const Place& place, const Words& command) {
  std::string error;
  auto plan = make_plan(place, command, &error);
  INFO(error);
  REQUIRE(plan);
  return *plan;
}

inline std::string refused(const Place& place, const Words& command) {
  std::string error;
  CHECK(!make_plan(place, command, &error));
  CHECK(error.find('\n') == std::string::npos);
  return error;
}

}  // namespace dshang::launch
