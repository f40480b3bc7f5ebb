// The two files of a bug report, and their names.
#pragma once

#include <string>
#include <vector>

#include "issue/bundle.h"

namespace dshang::monitor::cli {

class IssueOutput {
 public:
  // `name` as it was given, "" = one of the time.  Throws std::runtime_error where files of a given name
  // exist, or could not be made.
  explicit IssueOutput(const std::string& name);

  // Writes NAME.md and NAME.tar.zst.  Returns why the files lie in the folder NAME instead, "" = they do not.
  std::string write(const issue::Bundle& bundle);

  const std::string& name() const { return name_; }

 private:
  void claim();

  std::string name_;
  bool given_;
};

}  // namespace dshang::monitor::cli
