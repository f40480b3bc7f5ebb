#include "monitor/cli/brackets.h"

#include <algorithm>

namespace dshang::monitor::cli {
namespace {

constexpr char kMark = '\x01';

}  // namespace

std::vector<std::string> marked_words(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {
    std::string word = argv[i];
    if (word.starts_with('[') && word.ends_with(']')) word.insert(0, 1, kMark);
    words.push_back(std::move(word));
  }
  return words;
}

void take_marks_off(CLI::App& app) {
  auto off = [](std::string word) { return word.starts_with(kMark) ? word.substr(1) : word; };
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() > 0) option->transform(off, "", "");
  }
  for (CLI::App* command : app.get_subcommands({})) take_marks_off(*command);
}

std::string without_marks(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), kMark), text.end());
  return text;
}

}  // namespace dshang::monitor::cli
