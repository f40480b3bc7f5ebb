// How values are written behind their names, in programs, configurations and commands.
#pragma once

#include <string_view>
#include <vector>

#include "issue/scan.h"

namespace dshang::issue {

struct Literal {
  std::size_t begin = 0, end = 0;
  bool quoted = false;
  std::string_view key = {};  // of an item in a list or object: the name before it there
  bool item = false;
  std::size_t behind = 0;  // past the closing mark
};
using Literals = std::vector<Literal>;

struct Writing {
  bool whole = false;    // a word ends at a blank alone: variables of the environment, options
  bool address = false;  // ?name=value&…
  bool colon = false;    // name: value, which may stand in the lines below
  bool key = false;      // "name"
  std::size_t name = 0;  // where the name begins
};

// A string at `from`: f"…", """…""", \"…\".  Nothing where none begins.
Literal string_at(std::string_view text, std::size_t from);

// Everything that may be the value: one word or string, those of a list, lines of a block, what stands behind
// "or" and ":-".
Literals values_at(std::string_view text, std::size_t from, const Writing& writing);

}  // namespace dshang::issue
