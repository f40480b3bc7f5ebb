#include "core/job/field_reader.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "core/flight/hash.h"
#include "core/job/printable.h"
#include "core/job/text_site.h"

namespace dshang::job {

FieldReader::FieldReader(std::vector<TextToken> tokens, TextScope& scope, std::string what)
    : tokens_(std::move(tokens)), taken_(tokens_.size()), scope_(scope), what_(std::move(what)) {}

void FieldReader::finish() const {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (taken_[i]) continue;
    const TextToken& token = tokens_[i];
    for (std::size_t other = 0; other < i; ++other) {
      if (!token.key.empty() && tokens_[other].key == token.key)
        throw TextError(token.key + "= stands twice");
    }
    bool bare = token.key.empty();
    std::string allowed;
    for (std::string_view word : bare ? words_ : keys_)
      allowed += ' ' + std::string(word) + (bare ? "" : "=");
    throw TextError(
        (bare ? "unknown word \"" + token.text.substr(0, 60) + '"' : "unknown key " + token.key + '=') +
        " in " + what_ + "; allowed:" + (allowed.empty() ? " none" : allowed));
  }
}

bool FieldReader::has(std::string_view key) const {
  for (const TextToken& token : tokens_) {
    if (token.key == key) return true;
  }
  return false;
}

const TextToken* FieldReader::take(std::string_view key) {
  keys_.push_back(key);
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (taken_[i] || tokens_[i].key != key) continue;
    taken_[i] = true;
    return &tokens_[i];
  }
  return nullptr;
}

TextToken FieldReader::first_bare(const char* meaning) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (taken_[i] || !tokens_[i].key.empty()) continue;
    taken_[i] = true;
    return tokens_[i];
  }
  throw TextError(what_ + " needs " + meaning);
}

bool FieldReader::take_word(std::string_view word) {
  words_.push_back(word);
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (taken_[i] || !tokens_[i].key.empty() || tokens_[i].quoted || tokens_[i].text != word) continue;
    taken_[i] = true;
    return true;
  }
  return false;
}

std::size_t FieldReader::index_in(std::string_view text, const std::string_view* table, std::size_t size) {
  std::string allowed;
  for (std::size_t i = 0; i < size; ++i) {
    if (table[i] == text) return i;
    allowed += (i ? " " : "") + std::string(table[i]);
  }
  throw TextError("unknown word \"" + std::string(text.substr(0, 60)) + "\"; allowed: " + allowed);
}

NameId FieldReader::name_of(const TextToken& token) {
  return token.is_none() ? 0 : scope_.names.name(printable(token.text));
}

void FieldReader::bare(NameId& name) { name = name_of(first_bare("a name")); }

void FieldReader::op_name(char (&name)[24]) {
  TextToken token = first_bare("a name");
  bool fits = token.text.size() < sizeof name;
  for (char c : token.text) fits = fits && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
  if (!fits) throw TextError("the name of an operation has at most 23 letters a-z A-Z 0-9 _");
  std::memcpy(name, token.text.data(), token.text.size());
}

void FieldReader::number_if(std::uint64_t& value, std::uint64_t by_default) {
  value = by_default;
  words_.push_back("<count>");
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const TextToken& token = tokens_[i];
    if (taken_[i] || !token.key.empty() || token.quoted || !is_number(token.text)) continue;
    taken_[i] = true;
    value = to_unsigned(token.text);
    return;
  }
}

void FieldReader::call_flags(std::uint32_t& flags, std::uint32_t with) {
  flags = words::kCallStates[0].flags | with;
  for (const words::CallState& state : words::kCallStates) {
    if (take_word(state.word)) flags = state.flags | with;
  }
  const TextToken* token = take("flags");
  if (!token) return;
  flags = 0;
  if (token->text == "none") return;
  std::string_view rest = token->text;
  while (true) {
    std::size_t plus = std::min(rest.find('+'), rest.size());
    std::string_view word = rest.substr(0, plus);
    if (word.starts_with("0x")) {
      flags |= narrow<std::uint32_t>(to_unsigned(word));
    } else {
      flags |= 1u << index_in(word, words::kCallFlag, std::size(words::kCallFlag));
    }
    if (plus == rest.size()) return;
    rest.remove_prefix(plus + 1);
  }
}

void FieldReader::id(std::string_view key, std::uint64_t& value, std::uint64_t by_default) {
  value = by_default;
  const TextToken* token = take(key);
  if (!token) return;
  value = is_number(token->text) ? to_unsigned(token->text)
                                 : flight::fnv1a(token->text.data(), token->text.size());
}

void FieldReader::time_from(std::uint64_t start, std::string_view key, std::uint64_t& ns,
                            std::uint64_t by_default) {
  ns = by_default;
  const TextToken* token = take(key);
  if (!token) return;
  ns = token->is_none() ? 0 : start + static_cast<std::uint64_t>(seconds_value(token->text));
}

void FieldReader::step(std::string_view key, std::int64_t& step, std::int64_t by_default) {
  const TextToken* token = take(key);
  step = token ? step_of(*token) : by_default;
}

void FieldReader::name(std::string_view key, NameId& name, NameId by_default) {
  const TextToken* token = take(key);
  name = token ? name_of(*token) : by_default;
}

void FieldReader::plain(std::string_view key, std::string& text) {
  if (const TextToken* token = take(key)) text = printable(token->text);
}

void FieldReader::site(std::string_view key, SiteId& site) {
  site = 0;
  const TextToken* token = take(key);
  if (!token || token->is_none()) return;
  auto defined = scope_.sites.find(token->text);
  site = defined != scope_.sites.end() ? defined->second
                                       : scope_.names.site(frames_of(token->text, scope_.names), false);
}

void FieldReader::sizes(std::string_view key, std::uint32_t (&sizes)[flight::kBatchSizes]) {
  std::fill(std::begin(sizes), std::end(sizes), 0u);
  const TextToken* token = take(key);
  if (!token) return;
  std::string_view text = token->text;
  for (std::uint32_t& size : sizes) {
    std::size_t end = std::min(text.find('x'), text.size());
    size = narrow<std::uint32_t>(to_unsigned(std::string(text.substr(0, end))));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (text.empty()) return;
  }
  throw TextError("more than " + std::to_string(flight::kBatchSizes) + " sizes");
}

void FieldReader::comm(std::string_view key, std::uint32_t& comm) {
  comm = 0;
  const TextToken* token = take(key);
  if (scope_.comms.empty()) throw TextError("a call needs a communicator: `comm <name>` stands before it");
  if (!token) return;
  auto found = scope_.comms.find(token->text);
  if (found != scope_.comms.end()) {
    comm = found->second;
    return;
  }
  std::string allowed;
  for (const auto& [name, index] : scope_.comms) allowed += ' ' + name;
  throw TextError("no communicator \"" + token->text.substr(0, 60) + "\"; there are:" + allowed);
}

}  // namespace dshang::job
