// An entry of the catalogue: an error that is known, how a log shows it, what causes it and what cures it.
// A new one is one entry in the table of its theme.
#pragma once

#include <string>
#include <vector>

namespace dshang::explain {

// In order of importance; those of the doctor.
enum class Severity { kWillFail, kWillHang, kWrongResult, kSlow, kAdvice };

// What follows from something else is told behind it.
enum class Role { kCause, kConsequence };

struct Pattern {
  // RE2, sought in each line by itself, behind the prefixes of launchers.  Its longest run of plain
  // characters (required_literal) finds the lines to look at: it has at least kShortestLiteral of them.
  const char* regex;
  // Counts only where the traceback above the line has a frame that matches this.
  const char* frame = nullptr;
};

struct Observed;
class Hits;

struct Entry {
  const char* id;
  Severity severity;
  const char* summary;            // what happened; the line itself is quoted behind it
  std::vector<Pattern> patterns;  // those whose lines say most first: they are quoted
  const char* versions;           // in which the text was seen
  const char* cause;
  const char* fix;
  const char* reference;
  Role role = Role::kCause;
  std::vector<const char*> hides{};  // entries that are not told beside this one, because it is more exact
  // In the place of "its text was seen": whether, and with which words, it is told of this log.
  void (*judge)(const Entry&, const Observed&, Hits&) = nullptr;
  bool needs_line_above = false;  // it says what the line itself does not: quoted before it
};

using Entries = std::vector<Entry>;
const Entries& config_entries();
const Entries& precision_entries();
const Entries& build_entries();
const Entries& launch_entries();
const Entries& network_entries();
const Entries& number_entries();
const Entries& memory_entries();
const Entries& checkpoint_entries();
const Entries& zero_entries();
const Entries& training_entries();
const Entries& inference_entries();
const Entries& watchdog_entries();
const Entries& process_entries();

const char* severity_words(Severity severity);   // "will fail"
const char* report_severity(Severity severity);  // hang, error, warning, info

}  // namespace dshang::explain
