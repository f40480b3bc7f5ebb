#include "monitor/cli/issue_output.h"

#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <stdexcept>

#include "issue/archive.h"
#include "monitor/disk.h"

namespace dshang::monitor::cli {
namespace {

namespace fs = std::filesystem;

std::string name_of_now() {
  char text[64];
  std::time_t now = std::time(nullptr);
  struct tm utc {};
  gmtime_r(&now, &utc);
  std::strftime(text, sizeof text, "dshang-issue-%Y%m%d-%H%M%S", &utc);
  return text;
}

// What stands in the way of files of this name, "" = nothing.  A dangling link does, too.
std::string in_the_way(const std::string& name, std::initializer_list<const char*> endings) {
  std::error_code error;
  for (const char* ending : endings) {
    if (fs::symlink_status(name + ending, error).type() != fs::file_type::not_found) return name + ending;
  }
  return "";
}

[[noreturn]] void refuse(const std::string& path) {
  throw std::runtime_error("issue: " + path + " exists already; choose another --output");
}

// Makes the folder of that name, which keeps others from the name; returns what stands in the way.  The files
// are looked for once the folder is there: another report may have been finished in the meantime.
std::string take(const std::string& name) {
  if (!make_directory(name)) return name;
  std::string there = in_the_way(name, {".md", ".tar.zst"});
  if (!there.empty()) rmdir(name.c_str());
  return there;
}

}  // namespace

IssueOutput::IssueOutput(const std::string& name)
    : name_(name.empty() ? name_of_now() : name), given_(!name.empty()) {
  std::string there = in_the_way(name_, {"", ".md", ".tar.zst"});
  if (given_ && !there.empty()) refuse(there);
  std::error_code error;
  fs::path parent = fs::path(name_).parent_path();
  if (!parent.empty() && !fs::is_directory(parent, error))
    throw std::runtime_error("issue: " + parent.string() + " is no directory");
}

// A name of the time is numbered where another report of the same second has it.
void IssueOutput::claim() {
  const std::string first = name_;
  for (int number = 2;; ++number) {
    std::string there = take(name_);
    if (there.empty()) return;
    if (given_) refuse(there);
    name_ = first + "-" + std::to_string(number);
  }
}

// Files in a folder of their own; the folder goes once it is packed.
std::string IssueOutput::write(const issue::Bundle& bundle) {
  claim();
  replace_file(name_ + ".md", bundle.markdown);
  for (const issue::File& file : bundle.files) replace_file(name_ + "/" + file.name, file.content);
  fs::path path(name_);
  fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::string why = issue::pack(parent.string(), path.filename().string(), name_ + ".tar.zst");
  std::error_code error;
  if (why.empty()) fs::remove_all(path, error);
  return why;
}

}  // namespace dshang::monitor::cli
