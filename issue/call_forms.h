// Secrets that are arguments of a function: the table of functions, and what is found by it.
#pragma once

#include "issue/literals.h"

namespace dshang::issue {

// A call at `from` that hands on the value under a secret's name: SecretStr("…"), Field(default="…"),
// get("NAME", "…").
Literals passed_value(std::string_view text, std::size_t from);

// default="…" among the arguments from here on.
Literals default_argument(std::string_view text, std::size_t from);

}  // namespace dshang::issue
