#include "monitor/attempt_files.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "monitor/disk.h"

namespace dshang::monitor {

namespace fs = std::filesystem;

AttemptFiles::AttemptFiles(Place place, int number) : place_(std::move(place)), number_(number) {
  make_directories(place_.directory);
  auto path_of = [this] { return place_.directory + "/attempt-" + std::to_string(number_); };
  if (number_ == 0) {
    number_ = newest_attempt(place_.directory) + 1;
    while (!make_directory(path_of())) ++number_;
  } else {
    make_directory(path_of());
  }
  path_ = path_of();
  make_directory(path_ + "/flight");
  point_to_attempt(place_.directory, "flight", number_);
}

std::string AttemptFiles::spool_note() const { return path_ + "/flight/spool." + place_.host; }

void AttemptFiles::open_spool() {
  fs::path job = place_.spool, user = job.parent_path();
  std::string spool = place_.spool + "/attempt-" + std::to_string(number_);
  make_private_directory(user);
  make_private_directory(job);
  make_private_directory(spool);
  spool_ = spool;
  replace_file(spool_ + "/directory", path_ + "\n");
  replace_file(spool_note(), spool_ + "\n");
  keep_spooled();
}

// The processes of these files may be gone; those that live will be copied anew.
void AttemptFiles::keep_spooled() const {
  for (const auto& entry : fs::directory_iterator(spool_)) {
    if (entry.path().extension() != ".flight") continue;
    fs::copy_file(entry.path(), fs::path(path_) / "flight" / entry.path().filename(),
                  fs::copy_options::update_existing);
  }
}

// One disk that fails does not keep the other from its copy.
void AttemptFiles::to_both(const std::string& text,
                           void (*write)(const std::string&, const std::string&)) const {
  if (!spool_.empty()) {
    try {
      write(spool_ + "/monitor.log", text);
    } catch (const DiskError&) {
      write(path_ + "/flight/monitor.log", text);
      throw;
    }
  }
  write(path_ + "/flight/monitor.log", text);
}

void AttemptFiles::append_journal(const std::string& lines) { to_both(lines, append_to_file); }

void AttemptFiles::replace_journal(const std::string& all) { to_both(all, replace_file); }

std::string AttemptFiles::report_name(const std::string& ending) const {
  return (place_.head ? "report." : "node.") + ending;
}

// False where the name is taken by a file of the user's own, which stays.
bool AttemptFiles::write_one(const std::string& file, const std::string& content) const {
  try {
    replace_file(path_ + "/" + file, content);
    return point_to_attempt(place_.directory, file, number_);
  } catch (const DiskError&) {
    forget_earlier(file);
    throw;
  }
}

void AttemptFiles::throw_kept(const std::string& file) const {
  throw DiskError(place_.directory + "/" + file + " is a file of your own and stays; the report is in " +
                  path_ + "/");
}

void AttemptFiles::write_report(const std::string& json, const std::string& text) {
  // The text first: who sees the new report.json finds what belongs to it.
  std::string kept;
  for (const auto& [ending, content] : {std::pair{"txt", &text}, {"json", &json}}) {
    if (!write_one(report_name(ending), *content)) kept = report_name(ending);
  }
  if (!kept.empty()) throw_kept(kept);
}

void AttemptFiles::write_page(const std::string& html) {
  if (!write_one(report_name("html"), html)) throw_kept(report_name("html"));
}

void AttemptFiles::write_ranks(const std::string& ranks) { replace_file(path_ + "/flight/ranks", ranks); }

// What a reader is sent to must not be the report of an earlier attempt.
void AttemptFiles::forget_earlier(const std::string& name) const {
  std::error_code error;
  fs::path link = fs::path(place_.directory) / name;
  std::string attempt = fs::read_symlink(link, error).parent_path().string();
  int number = 0;
  if (std::sscanf(attempt.c_str(), "attempt-%d", &number) == 1 && number < number_) fs::remove(link, error);
}

void AttemptFiles::copy(const std::vector<FlightCopy>& processes, const std::string& directory,
                        FlightFiles* files) {
  for (const FlightCopy& process : processes) {
    auto [file, is_new] = files->try_emplace(process.name, directory + "/" + process.name);
    file->second.update(*process.memory);
  }
}

void AttemptFiles::copy_flight(const std::vector<FlightCopy>& processes) {
  kept_all_ = false;
  copy(processes, path_ + "/flight", &kept_);
  kept_all_ = true;
}

void AttemptFiles::spool_flight(const std::vector<FlightCopy>& processes) {
  if (!spool_.empty()) copy(processes, spool_, &spooled_);
}

void AttemptFiles::remove_spool() {
  std::error_code error;
  if (spool_.empty() || (!kept_all_ && fs::exists(path_, error))) return;
  fs::remove_all(spool_, error);
  fs::remove(spool_note(), error);
  // Other attempts and jobs keep theirs: a directory that is not empty stays.
  rmdir(place_.spool.c_str());
  rmdir(fs::path(place_.spool).parent_path().c_str());
  spool_.clear();
}

void AttemptFiles::remove_all() {
  kept_all_ = true;
  remove_spool();
  std::error_code error;
  fs::remove_all(path_, error);
  for (const char* name :
       {"flight", "report.txt", "report.json", "report.html", "node.txt", "node.json", "node.html"}) {
    fs::path link = fs::path(place_.directory) / name;
    if (fs::is_symlink(fs::symlink_status(link, error)) && !fs::exists(link, error)) fs::remove(link, error);
  }
  fs::remove(place_.directory, error);  // only when nothing else is in it
}

}  // namespace dshang::monitor
