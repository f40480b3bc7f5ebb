// Texts without their secrets.
//
// Secrets are known by their form (secret_forms.h), by the name before them (name_rules.h) and by having
// been seen in either way elsewhere: so all texts are looked at with learn() first, and then cleaned.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dshang::issue {

class Redactor {
 public:
  // Remembers the secrets of a text, so that they are known where they stand alone.
  void learn(std::string_view text);
  // The value of a variable or option of this name.
  void learn_value(std::string_view name, std::string_view value);

  // The text with "[redacted: <kind>]" in the place of each secret; `where` names the text in the list.
  std::string clean(std::string_view text, const std::string& where);
  // A value of that name: all of it, where the name is that of a secret.
  std::string clean_value(std::string_view name, std::string_view value, const std::string& where);

  struct Count {
    std::string kind, where;
    int count = 0;
  };
  // What was redacted, never the secrets; by kind, then place.
  std::vector<Count> done() const;

 private:
  void remember(std::string_view secret, const std::string& kind);
  std::string mark(const std::string& kind, const std::string& where);

  std::map<std::string, std::string> known_;                 // secret -> kind
  std::map<std::pair<std::string, std::string>, int> done_;  // kind, where
};

}  // namespace dshang::issue
