#include "monitor/warnings.h"

#include <algorithm>
#include <cstdlib>

#include "catch.h"
#include "core/rank/param.h"

using namespace dshang::monitor;

DSHANG_PARAM(seconds, UNIT_PERIOD, "3", "0.25..86400", "of this test");

namespace {

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

// The lines about one variable.
std::vector<std::string> about(const std::string& name) {
  std::vector<std::string> found;
  for (const std::string& line : environment_warnings("/proc/self/exe")) {
    if (line.starts_with(name)) found.push_back(line);
  }
  return found;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a mistyped variable is told with the nearest name") {
  Variable variable("DSHANG_UNIT_PERIDO", "3");
  CHECK(about("DSHANG_UNIT_PERIDO") ==
        Lines{"DSHANG_UNIT_PERIDO is no variable that dshang knows; the nearest is DSHANG_UNIT_PERIOD"});
}

TEST_CASE("where the library's variables cannot be read, no name is unknown, and a bad value still is bad") {
  Variable mistyped("DSHANG_UNIT_PERIDO", "3"), bad("DSHANG_UNIT_PERIOD", "soon");
  for (const char* library : {"", "/no/such/libdshang.so", "/etc/hostname"}) {
    std::vector<std::string> lines = environment_warnings(library);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].starts_with("DSHANG_UNIT_PERIOD="));
  }
}

TEST_CASE("a bad value is told with its range") {
  CHECK(param_UNIT_PERIOD.value() == 3);
  Variable variable("DSHANG_UNIT_PERIOD", "soon");
  Lines lines = about("DSHANG_UNIT_PERIOD");
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("0.25..86400") != std::string::npos);
}
