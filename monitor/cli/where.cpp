#include <sys/auxv.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <system_error>

#include "core/job/printable.h"
#include "monitor/cli/commands.h"

namespace dshang::monitor::cli {

namespace fs = std::filesystem;

std::size_t words_behind_dashes(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--") return static_cast<std::size_t>(argc - i - 1);
  }
  return 0;
}

CLI::Validator not_empty() {
  return CLI::Validator(
      [](const std::string& word) { return std::string(word.empty() ? "an empty word names nothing" : ""); },
      "");
}

int bad_input(const std::string& text) {
  // Names of files and keys are what others wrote.
  std::fprintf(stderr, "dshang: %s\n", job::printable(text).c_str());
  return 2;
}

// The program's path as it was started; what is left where /proc is hidden.
static const char* started_as() {
  unsigned long path = getauxval(AT_EXECFN);
  return path ? reinterpret_cast<const char*>(path) : "";
}

std::string program_directory() {
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) program = started_as();
  return program.parent_path().string();
}

namespace {

constexpr const char* kLibrary = "libdshang.so";
constexpr const char* kDlsym = "libdshang_dlsym.so";

std::string first_that_has(std::initializer_list<const char*> places, const char* file) {
  for (const char* place : places) {
    fs::path directory = fs::path(program_directory()) / place;
    std::error_code error;
    if (!fs::exists(directory / file, error)) continue;
    fs::path real = fs::canonical(directory, error);
    return (error ? directory : real).string();
  }
  return "";
}

int print_path(const std::string& path, const char* what) {
  if (path.empty()) return bad_input(std::string(what) + " is not where this program expects it");
  std::printf("%s\n", path.c_str());
  return 0;
}

}  // namespace

// A build directory and an installation have them beside the program; a package may have them elsewhere.
static std::string path_of(const std::string& library) {
  std::string directory = first_that_has({".", "../lib/dshang", "../lib", "../lib64"}, library.c_str());
  return directory.empty() ? "" : directory + "/" + library;
}

std::string library_path() { return path_of(kLibrary); }
std::string dlsym_path() { return path_of(kDlsym); }

void add_path(CLI::App& app, Run* chosen) {
  auto what = std::make_shared<std::string>();
  CLI::App* path =
      app.add_subcommand("path", "where the libraries (lib, dlsym) and the header (include) are");
  path->add_option(
      "WHAT", *what,
      "lib: libdshang.so, for LD_PRELOAD; dlsym: libdshang_dlsym.so, to stand behind it where NCCL is called "
      "through ctypes; include: the directory of dshang.h");
  path->callback([chosen, what] {
    *chosen = [what] {
      if (*what == "lib") return print_path(library_path(), kLibrary);
      if (*what == "dlsym") return print_path(dlsym_path(), kDlsym);
      if (*what == "include") {
        return print_path(first_that_has({"include", "../../include", "../include"}, "dshang.h"), "dshang.h");
      }
      std::string problem = what->empty() ? "say what" : *what + " is not known";
      return bad_input("path: " + problem +
                       "; lib is libdshang.so, dlsym libdshang_dlsym.so, include the directory of dshang.h");
    };
  });
}

}  // namespace dshang::monitor::cli
