#include "issue/shell_words.h"

namespace dshang::issue {
namespace {

// Quoted for a POSIX shell where it has to be.
std::string word_text(const std::string& word) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string result = "'";
  for (char c : word) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

}  // namespace

std::vector<std::string> words_of_command(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  bool open = false;
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    char c = command[i];
    bool blank = c == ' ' || c == '\t' || c == '\n';
    if (quote ? c == quote : c == '\'' || c == '"') {
      quote = quote ? 0 : c;
      open = true;
    } else if (!quote && blank) {
      if (open) words.push_back(std::move(word));
      word.clear();
      open = false;
    } else {
      if (c == '\\' && quote != '\'' && i + 1 < command.size()) c = command[++i];
      word += c;
      open = true;
    }
  }
  if (open) words.push_back(std::move(word));
  return words;
}

std::string command_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word_text(word);
  return text;
}

}  // namespace dshang::issue
