// Takes the fields of one line of the readable form out of its tokens; the counterpart of FieldWriter in
// dump.cpp, see text_fields.h.  Every function throws TextError.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "core/job/names.h"
#include "core/job/text_line.h"
#include "core/job/text_words.h"

namespace dshang::job {

// What lines may refer to.
struct TextScope {
  Names& names;
  std::uint64_t start_ns;
  std::unordered_map<std::string, SiteId> sites;
  std::unordered_map<std::string, std::uint32_t> comms;
};

class FieldReader {
 public:
  // `what` names the line in errors.
  FieldReader(std::vector<TextToken> tokens, TextScope& scope, std::string what);

  // Complains of what no function below has taken.
  void finish() const;

  TextToken first_bare(const char* meaning);  // the next bare word; it must be there
  bool has(std::string_view key) const;
  bool take_word(std::string_view word);  // that very bare word, if it is there

  void bare(NameId& name);
  template <typename T>
  void bare_signed(T& value) {
    value = narrow<T>(to_signed(first_bare("a number").text));
  }
  template <typename T>
  void bare_unsigned(T& value) {
    value = narrow<T>(to_unsigned(first_bare("a number").text));
  }
  void bare_step(std::int64_t& step) { step = step_of(first_bare("a step")); }
  void op_name(char (&name)[24]);
  template <std::size_t N>
  void bits(std::uint32_t& bits, const std::string_view (&table)[N]) {
    bits = 0;
    for (std::size_t i = 0; i < N; ++i) {
      if (take_word(table[i])) bits |= 1u << i;
    }
    if (const TextToken* token = take("bits")) bits |= narrow<std::uint32_t>(to_unsigned(token->text));
  }
  template <typename E, std::size_t N>
  void word_first(E& value, const std::string_view (&table)[N]) {
    value = static_cast<E>(index_in(first_bare("a word").text, table, N));
  }

  void number_if(std::uint64_t& value, std::uint64_t by_default);
  template <typename E, std::size_t N>
  void word_if(E& value, const std::string_view (&table)[N], E by_default) {
    value = by_default;
    for (std::size_t i = 0; i < N; ++i) {
      if (take_word(table[i])) value = static_cast<E>(i);
    }
  }
  void call_flags(std::uint32_t& flags, std::uint32_t with);

  template <typename T>
  void number(std::string_view key, T& value, std::type_identity_t<T> by_default) {
    const TextToken* token = take(key);
    value = by_default;
    if (!token) return;
    if constexpr (std::is_signed_v<T>) {
      value = narrow<T>(to_signed(token->text));
    } else {
      value = narrow<T>(to_unsigned(token->text));
    }
  }
  void hex(std::string_view key, std::uint64_t& value, std::uint64_t by_default) {
    number(key, value, by_default);
  }
  // A number, or a word whose hash is the id.
  void id(std::string_view key, std::uint64_t& value, std::uint64_t by_default);
  void time(std::string_view key, std::uint64_t& ns, std::uint64_t by_default) {
    time_from(scope_.start_ns, key, ns, by_default);
  }
  void time_from(std::uint64_t start, std::string_view key, std::uint64_t& ns, std::uint64_t by_default);
  void step(std::string_view key, std::int64_t& step, std::int64_t by_default);
  void name(std::string_view key, NameId& name, NameId by_default);
  void plain(std::string_view key, std::string& text);
  void site(std::string_view key, SiteId& site);
  void sizes(std::string_view key, std::uint32_t (&sizes)[flight::kBatchSizes]);
  void comm(std::string_view key, std::uint32_t& comm);
  template <typename E, std::size_t N>
  void word(std::string_view key, E& value, const std::string_view (&table)[N],
            std::type_identity_t<E> by_default) {
    const TextToken* token = take(key);
    value = token ? static_cast<E>(index_in(token->text, table, N)) : by_default;
  }

 private:
  const TextToken* take(std::string_view key);  // null = not there
  NameId name_of(const TextToken& token);
  static std::int64_t step_of(const TextToken& token) {
    return token.is_none() ? INT64_MIN : to_signed(token.text);
  }
  static std::size_t index_in(std::string_view text, const std::string_view* table, std::size_t size);

  template <typename T, typename V>
  static T narrow(V value) {
    T narrowed = static_cast<T>(value);
    if (static_cast<V>(narrowed) == value) return narrowed;
    throw TextError(std::to_string(value) +
                    " is out of range: " + std::to_string(std::numeric_limits<T>::min()) + " to " +
                    std::to_string(std::numeric_limits<T>::max()));
  }

  std::vector<TextToken> tokens_;
  std::vector<bool> taken_;
  TextScope& scope_;
  std::string what_;
  std::vector<std::string_view> keys_, words_;  // asked for so far, for errors
};

}  // namespace dshang::job
