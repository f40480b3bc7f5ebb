// The bug report: sections, put into one Markdown text and into files.
#pragma once

#include <string>
#include <vector>

#include "issue/redact.h"

namespace dshang::issue {

struct Section {
  std::string title;
  std::string note;      // a sentence before the text; may be all there is
  std::string file;      // name in the archive; "" in the Markdown only
  std::string text;      // shown in a block
  std::string language;  // of the block: json, python, text
  bool folded = false;   // shown closed, for what is long and rarely decides
};

struct File {
  std::string name, content;
};

struct Material {
  std::string head;  // one or two sentences below the title
  std::vector<Section> sections;
  std::vector<File> attached;        // texts in the archive alone
  std::vector<std::string> missing;  // "nvidia-smi: it is not installed here"
};

struct Bundle {
  std::string markdown;     // ready to paste: below the 65 536 characters that GitHub takes
  std::vector<File> files;  // each section whole, and the Markdown as issue.md
  std::vector<std::string> missing;  // cleaned
  std::vector<Redactor::Count> redacted;
};

// Everything passes the redactor, to which secrets of the environment may have been told before.
Bundle bundle_of(const Material& material, Redactor* redactor);

}  // namespace dshang::issue
