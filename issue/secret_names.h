// Whether a name is that of a secret, and whether what stands behind it can be one.
#pragma once

#include <string>
#include <string_view>

namespace dshang::issue {

// How much a value has to look like a secret.
enum class Looks {
  kAny,    // the name says it all
  kKey,    // the word also means that of a map: not short
  kToken,  // the word also means part of a text: no blanks; without quotes as a machine makes them
  kMade,   // the word has more other meanings than this one: letters and digits mixed
  kPair,   // only behind the user's name, in a list of two
};

struct SecretName {
  const char* kind = "";  // what the value is called where it is listed: "password"; "" none of a secret
  Looks looks = Looks::kAny;
  bool loud = false;  // in capitals, or an option: seldom a variable that holds something else
  bool key = false;   // of a configuration
  bool bare = false;  // a single word
  bool pair = false;  // of a list the first item is the user's name
};

// Where a name stands.
struct NameUse {
  bool option = false;  // --name
  bool quoted = false;  // "name": a key of a configuration
};

// Names of environment variables, options, keys of configurations, variables.
SecretName secret_name(std::string_view name, NameUse use = {});

// A name that stands beside a secret, not for one: of a user, a host, a file.
bool names_no_secret(std::string_view name);

// A value that is the name of a secret: "HF_TOKEN", "api_key".
bool names_one(std::string_view value);

bool can_be_secret(const SecretName& name, std::string_view value, bool quoted);

// A value that says nothing: empty, a truth value, a type, a placeholder, a reference to another variable.
bool says_nothing(std::string_view value);

// An expression of a programming language, not a literal value: tokenizer(x), args.token, batch["x"].
bool is_expression(std::string_view value);

// Long enough and mixed enough to be made by a machine.
bool looks_random(std::string_view value);

// Letters and digits mixed: neither a word, nor words and numbers with hyphens, nor a path.
bool looks_made(std::string_view value);

}  // namespace dshang::issue
