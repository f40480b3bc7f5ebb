#include "monitor/cli/page_file.h"

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "monitor/disk.h"

namespace dshang::monitor::cli {

namespace fs = std::filesystem;

std::string write_page(const std::string& named, const std::string& html) {
  constexpr const char* kName = "report.html";
  std::error_code error;
  fs::path flight = fs::canonical(fs::path(named) / "flight", error);
  fs::path folder = error ? fs::path(named) : flight.parent_path();
  replace_file((folder / kName).string(), html);
  // In a DSHANG_DIR the name is a link into the newest attempt, as that of the other reports.
  int number = 0;
  bool attempt = std::sscanf(folder.filename().c_str(), "attempt-%d", &number) == 1;
  bool inside = attempt && fs::equivalent(folder.parent_path(), named, error);
  if (inside && point_to_attempt(named, kName, number)) return (fs::path(named) / kName).string();
  return (folder / kName).string();
}

}  // namespace dshang::monitor::cli
