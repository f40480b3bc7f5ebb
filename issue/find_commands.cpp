// Secrets in command lines, where the program says what a word is.
#include <algorithm>
#include <string>
#include <vector>

#include "issue/find_secrets.h"
#include "issue/scan.h"
#include "issue/secret_names.h"

namespace dshang::issue {
namespace {

enum class Join { kApart, kJoined, kEither };  // -p word, -pword; either, and -p=word

struct CommandForm {
  const char* programs;  // separated by blanks; "*" any
  const char* verb;      // a word that has to stand between; "" none
  const char* option;    // "": the next word that is no option
  Join join;
  char behind = 0;  // the secret stands behind this letter of the word
  Looks looks = Looks::kAny;
};

using enum Join;

constexpr CommandForm kCommands[] = {
    {"docker podman nerdctl buildah helm skopeo oras crane", "login", "-p", kEither},
    {"az", "login", "-p", kEither},
    {"curl", "", "-u", kEither, ':'},
    {"curl", "", "-U", kEither, ':'},
    {"wget http https", "", "-u", kApart, ':'},
    {"http https", "", "-a", kEither, ':'},
    {"curl wget http https", "", "--user", kEither, ':'},
    {"curl wget http https", "", "--proxy-user", kEither, ':'},
    {"curl wget http https", "", "--auth", kEither, ':'},
    {"redis-cli valkey-cli", "", "-a", kApart},
    {"mysql mysqldump mysqladmin mysqlimport mariadb mariadb-dump", "", "-p", kJoined},
    {"mongo mongosh mongodump mongorestore mongoexport mongoimport", "", "-p", kEither},
    {"sqlcmd bcp ipmitool", "", "-P", kEither},
    {"ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldappasswd ldapcompare", "", "-w", kEither},
    {"zip unzip zipcloak", "", "-P", kApart},
    {"7z 7za 7zr 7zz", "", "-p", kJoined},
    {"ssh-keygen", "", "-N", kApart},
    {"ssh-keygen", "", "-P", kApart},
    {"sshpass", "", "-p", kEither},
    {"lftp", "", "-u", kEither, ','},
    {"smbclient rpcclient", "", "-U", kEither, '%'},
    {"twine", "upload", "-p", kEither},
    {"wandb comet vault", "login", "", kApart},
    {"hf huggingface-cli", "login", "", kApart},
    {"*", "", "--user", kEither, ':', Looks::kMade},
    {"*", "", "-passin", kApart, ':'},
    {"*", "", "-passout", kApart, ':'},
    {"openssl", "", "-pass", kApart, ':'},
    {"openssl", "", "pass:", kJoined},
    {"openssl", "enc", "-k", kApart},
};

struct Word {
  std::size_t begin, end;
};
using Words = std::vector<Word>;

// Splits a text into words, and words into commands: as a shell does, or a list of quoted words.
class Commands {
 public:
  explicit Commands(std::string_view text) : text_(text) {}

  // False at the end of the text.
  bool next(Words* words) {
    words->clear();
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '\n' && !(at_ > 0 && text_[at_ - 1] == '\\')) return ++at_, true;
      if (c == '|' || c == ';' || c == '&' || c == '(' || c == ')') return ++at_, true;
      if (is_space(c) || separates(c)) {
        ++at_;
      } else {
        words->push_back(word());
      }
    }
    return !words->empty();
  }

 private:
  static bool separates(char c) { return std::string_view("[],\\{}").find(c) != kNone; }
  static bool ends_word(char c) { return is_space(c) || std::string_view("|;(\"'`").find(c) != kNone; }

  Word word() {
    std::size_t begin = behind_quote(text_, at_), end = begin;
    if (begin == at_) {
      while (end < text_.size() && !ends_word(text_[end])) ++end;
      at_ = end > at_ ? end : at_ + 1;
      while (end > begin && std::string_view(",)]").find(text_[end - 1]) != kNone) --end;
      return {begin, end};
    }
    while (end < text_.size() && text_[end] != '\n' && text_[end] != text_[begin - 1]) ++end;
    at_ = end + (ends_line(text_, end) ? 0 : 1);
    while (end > begin && text_[end - 1] == '\\') --end;
    return {begin, end};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class Command {
 public:
  Command(std::string_view text, const Words& words, Secrets* found)
      : text_(text), words_(words), found_(found) {}

  void find() {
    for (const CommandForm& form : kCommands) {
      std::size_t first = begin_of_arguments(form);
      bool wants_word = !*form.option;
      for (std::size_t at = first; at < words_.size(); ++at) {
        if (!wants_word) {
          find_option(form, at);
        } else if (!of(at).starts_with('-')) {
          add(form, words_[at]);
          break;
        }
      }
    }
  }

 private:
  std::string_view of(std::size_t at) const {
    return text_.substr(words_[at].begin, words_[at].end - words_[at].begin);
  }

  // Past the program and its verb; past all words where it is none of the form's.
  std::size_t begin_of_arguments(const CommandForm& form) const {
    std::size_t at = 0;
    if (form.programs[0] != '*') {
      auto runs = [&](std::size_t one) {
        return among(of(one).substr(of(one).rfind('/') + 1), form.programs);
      };
      while (at < words_.size() && !runs(at)) ++at;
      ++at;
    }
    if (!*form.verb) return at;
    while (at < words_.size() && of(at) != form.verb) ++at;
    return at + 1;
  }

  void find_option(const CommandForm& form, std::size_t at) {
    std::string_view word = of(at), option = form.option;
    if (!word.starts_with(option)) return;
    Word value = words_[at];
    value.begin += option.size();
    if (word.size() == option.size()) {
      if (form.join == kJoined || at + 1 >= words_.size()) return;
      value = words_[at + 1];
    } else if (form.join != kApart && word[option.size()] == '=') {
      ++value.begin;
    } else if (form.join == kApart || option.starts_with("--")) {
      return;
    }
    add(form, value);
  }

  void add(const CommandForm& form, Word value) {
    std::string_view word = text_.substr(value.begin, value.end - value.begin);
    if (form.behind) {
      std::size_t mark = word.find(form.behind);
      if (mark == kNone || mark == 0) return;
      value.begin += mark + 1;
      word = word.substr(mark + 1);
    }
    bool option = !form.behind && word.starts_with('-');
    if (option || word.size() < 4 || !can_be_secret({"password", form.looks, true}, word, true)) return;
    found_->push_back({value.begin, value.end, "password of a command"});
  }

  std::string_view text_;
  const Words& words_;
  Secrets* found_;
};

}  // namespace

void find_commands(std::string_view text, Secrets* found) {
  Commands commands(text);
  for (Words words; commands.next(&words);) Command(text, words, found).find();
}

}  // namespace dshang::issue
