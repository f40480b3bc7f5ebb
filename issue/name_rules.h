// Names of secrets: the table of rules.
//
// A new name is a word in a row, or a row; tests/issue/secrets_placed.py has an example and a near miss for
// each kind.
#pragma once

#include <span>

#include "issue/secret_names.h"

namespace dshang::issue {

// Loud: capitals or option; key: quoted, or loud.
enum class Spelling { kEvery, kCapitals, kOption, kLoud, kKey };
enum class Place { kAnywhere, kLast, kOnly };                     // of the word in the name

// A name is taken apart into words of small letters: "SharedAccessKey2" -> shared access key.
struct NameRule {
  const char* kind;   // "": none of a secret, whatever the rows below say
  const char* words;  // one of these
  Place place;
  const char* behind;      // the word before it is one of these; "" any or none; "*" any
  const char* not_behind;  // and none of these is before it
  Spelling spelling;
  Looks looks;
  bool pair = false;
};

// The first that fits decides.
std::span<const NameRule> name_rules();

// Words that are written together with the one before them: PGPASSWORD, HFTOKEN, apikey.
struct Glued {
  const char* ending;
  const char* behind;  // only these; "" anything
};
std::span<const Glued> glued_words();

// Last words of names, separated by blanks: of what is about a secret, and of what stands beside one.
const char* names_about();
const char* names_beside();

}  // namespace dshang::issue
