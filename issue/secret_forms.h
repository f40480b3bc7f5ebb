// Secrets that are known by their own form, wherever they stand: the table of kinds.
//
// A new kind is one row; tests/issue/secrets_made.py has an example and a near miss for each.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace dshang::issue {

// word: and _ -; dotted: and . ~; base64: and + / =; url: and ~ . / = ? & % @ :
enum class Letters { kDigit, kAlnum, kWord, kUpper, kHex, kDotted, kBase64, kUrl };

struct SecretForm {
  const char* kind;
  const char* prefix;
  Letters letters;             // of what follows
  std::size_t shortest;        // letters that follow at least
  std::size_t longest = 1000;  // and at most: a longer run is something else
  bool mixed = false;          // a digit is among them
  bool keeps_prefix = false;   // an address that may be read; what follows is the secret
};

std::span<const SecretForm> secret_forms();

// Runs of letters, with something known before each; the first has no prefix by which it could be looked for.
struct Part {
  const char* before;
  Letters letters;
  std::size_t shortest, longest = 1000;
};
struct PartedForm {
  const char* kind;
  Part parts[3];  // the last ones may be absent
};

std::span<const PartedForm> parted_forms();

bool is_letter_of(Letters letters, char c);

}  // namespace dshang::issue
