// Whether a name is that of a secret, and whether what stands behind it can be one.
#pragma once

#include <string>
#include <string_view>

namespace dshang::issue {

// What a value with this name is called where it is listed: "password", "token", "key"; "" where the name is
// none of a secret.  Names of environment variables, options, keys of configurations, variables.
std::string secret_name_kind(std::string_view name);

// A value that says nothing: empty, a truth value, a type, a placeholder, a reference to another variable.
bool says_nothing(std::string_view value);

// An expression of a programming language, not a literal value: tokenizer(x), args.token, batch["x"].
bool is_expression(std::string_view value);

// Long enough and mixed enough to be made by a machine.
bool looks_random(std::string_view value);

}  // namespace dshang::issue
