// What is told of the job itself: by its files, by the command line, by its log.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "doctor/facts.h"
#include "issue/bundle.h"

namespace dshang::issue {

// A job that dshang recorded.
struct RecordedJob {
  std::string directory;
  std::string report_text, report_json;
  int world_size = 0, nodes = 0;
  std::vector<std::string> hosts;
  std::map<std::string, std::string> facts;  // newest values, of the lowest rank that noted them
  std::vector<std::string> exceptions;       // "rank 1, step 4: RuntimeError: … at train.py:31 main"

  const std::string& fact(const std::string& key) const;
  // Texts that may have been too long to be recorded whole: one of the two is "".
  std::string whole(const std::string& key) const;
  std::string beginning(const std::string& key) const;
};

// The sections in the order in which they are read; `job` may be null, `logs` are paths.  Puts what the job
// noted of its configuration into `facts` where nothing else is told.
void add_job(const RecordedJob* job, doctor::Facts* facts, const std::vector<std::string>& logs,
             Material* material);

// The variables that a framework, a launcher or dshang reads, of the job or else of this program.
void add_environment(const RecordedJob* job, const doctor::Facts& facts, Redactor* redactor,
                     Material* material);

}  // namespace dshang::issue
