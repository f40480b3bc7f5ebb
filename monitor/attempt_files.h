// The files of one attempt: <dir>/attempt-<n>/ and, while the job runs, the copy on node-local disk (contract
// section 2).
//
// Threads: create() and everything after it on one thread (the Worker's).
// Failure: DiskError; what was not written is tried again at the next call where it makes sense.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "monitor/flight_file.h"
#include "monitor/mapping.h"

namespace dshang::monitor {

// A rank process whose flight memory is to be copied.
struct FlightCopy {
  std::string name;  // of the file
  std::shared_ptr<const Mapping> memory;
};

class AttemptFiles {
 public:
  struct Place {
    std::string directory;  // absolute; DSHANG_DIR, or <DSHANG_DIR>/node-<n> where rank 0 is on another node
    std::string spool;      // node-local: <temporary directory>/dshang-<uid>/<job>
    std::string host;
    bool head = true;  // rank 0 is on this node: reports are called report.*, else node.*
  };

  // Makes <directory>/attempt-<n>/flight: n is `number`, where another monitor began that, or one more than
  // the newest there is where that is 0.
  AttemptFiles(Place place, int number);

  int number() const { return number_; }
  const std::string& path() const { return path_; }
  const Place& place() const { return place_; }

  // The node-local directory, and the file that names it.  Flight files that another monitor left there are
  // kept.
  void open_spool();
  void append_journal(const std::string& lines);
  void replace_journal(const std::string& all);
  void write_report(const std::string& json, const std::string& text);
  void write_page(const std::string& html);
  // Which ranks are watched on this node, for the monitor on rank 0's (unheard.h).
  void write_ranks(const std::string& ranks);
  void copy_flight(const std::vector<FlightCopy>& processes);   // to <path>/flight
  void spool_flight(const std::vector<FlightCopy>& processes);  // to the node-local directory
  // A clean end: the node-local copy goes.  Kept when the files in `path` could not be written.
  void remove_spool();
  // For a move to another place.
  void remove_all();

 private:
  using FlightFiles = std::map<std::string, FlightFile>;
  std::string report_name(const std::string& ending) const;
  bool write_one(const std::string& file, const std::string& content) const;
  [[noreturn]] void throw_kept(const std::string& file) const;
  void keep_spooled() const;
  void to_both(const std::string& text, void (*write)(const std::string&, const std::string&)) const;
  void copy(const std::vector<FlightCopy>& processes, const std::string& directory, FlightFiles* files);
  std::string spool_note() const;
  void forget_earlier(const std::string& name) const;

  Place place_;
  int number_ = 0;
  std::string path_, spool_;
  bool kept_all_ = false;  // the last copy_flight() was complete
  FlightFiles kept_, spooled_;
};

}  // namespace dshang::monitor
