#include "issue/bundle.h"

#include <algorithm>

#include "core/job/printable.h"
#include "issue/tracebacks.h"

namespace dshang::issue {
namespace {

constexpr std::size_t kMostMarkdown =
    60000;  // bytes; the limit is 65 536 characters, others may be put before it
constexpr std::size_t kMostShown = 12000;  // of one section
constexpr std::size_t kLeastShown = 600;

// A fence that the text does not hold.
std::string fence_for(const std::string& text) {
  std::size_t longest = 2, run = 0;
  for (char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(longest + 1, '`');
}

// The first lines of it, at most `most` bytes.
std::string shown(const std::string& text, std::size_t most, const std::string& file) {
  if (text.size() <= most) return text;
  std::size_t end = text.rfind('\n', most);
  if (end == std::string::npos || end < most / 2) end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // within a letter
  std::string rest = std::to_string(text.size() - end) + " more bytes";
  return text.substr(0, end) + "\n… " + rest + (file.empty() ? "" : ": " + file + " in the archive") + "\n";
}

std::string block(const Section& section, std::size_t most) {
  std::string text = shown(section.text, most, section.file);
  if (!text.empty() && text.back() != '\n') text += '\n';
  std::string fence = fence_for(text);
  return fence + section.language + "\n" + text + fence + "\n";
}

std::string markdown_of(const Section& section, std::size_t most) {
  std::string text = "\n## " + section.title + "\n\n";
  if (!section.note.empty()) text += section.note + "\n";
  if (section.text.empty()) return text;
  if (!section.note.empty()) text += "\n";
  if (!section.folded) return text + block(section, most);
  return text + "<details><summary>" + section.title + "</summary>\n\n" + block(section, most) +
         "\n</details>\n";
}

std::string list_of(const std::vector<Redactor::Count>& redacted) {
  if (redacted.empty()) return "Nothing looked like a secret.\n";
  std::string text = "| kind | where | how many |\n|---|---|---|\n";
  for (const auto& one : redacted)
    text += "| " + one.kind + " | " + one.where + " | " + std::to_string(one.count) + " |\n";
  return text;
}

std::string tail(const std::vector<std::string>& missing, const std::vector<Redactor::Count>& redacted) {
  std::string text;
  if (!missing.empty()) {
    text += "\n## Not in this report\n\n";
    for (const std::string& one : missing) text += "* " + one + "\n";
  }
  return text + "\n## Redacted\n\n" + list_of(redacted);
}

// Sections share the room: the limit of each is halved until all fit.
std::string fitting(const std::string& head, const std::vector<Section>& sections, const std::string& end) {
  std::string text;
  for (std::size_t most = kMostShown; most >= kLeastShown; most /= 2) {
    text = head;
    for (const Section& section : sections) text += markdown_of(section, most);
    text += end;
    if (text.size() <= kMostMarkdown) break;
  }
  return text;
}

Section cleaned(const Section& section, Redactor* redactor) {
  Section result = section;
  result.note = redactor->clean(job::printable(section.note), section.title);
  result.text = redactor->clean(job::printable(without_colours(section.text)), section.title);
  return result;
}

}  // namespace

Bundle bundle_of(const Material& material, Redactor* redactor) {
  redactor->learn(material.head);
  for (const Section& section : material.sections) {
    redactor->learn(section.note);
    redactor->learn(job::printable(without_colours(section.text)));
  }
  for (const File& file : material.attached) redactor->learn(file.content);
  Bundle bundle;
  std::vector<Section> sections;
  for (const Section& section : material.sections) sections.push_back(cleaned(section, redactor));
  std::string head = "# Bug report\n\n" + redactor->clean(job::printable(material.head), "head") + "\n";
  for (const File& file : material.attached)
    bundle.files.push_back({file.name, redactor->clean(file.content, file.name)});
  for (const std::string& one : material.missing)
    bundle.missing.push_back(redactor->clean(job::printable(one), "not in this report"));
  bundle.redacted = redactor->done();
  bundle.markdown = fitting(head, sections, tail(bundle.missing, bundle.redacted));
  bundle.files.insert(bundle.files.begin(), {"issue.md", bundle.markdown});
  for (const Section& section : sections) {
    if (!section.file.empty() && !section.text.empty()) bundle.files.push_back({section.file, section.text});
  }
  return bundle;
}

}  // namespace dshang::issue
