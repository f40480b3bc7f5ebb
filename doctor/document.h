// A ds_config as text: DeepSpeed reads HJSON (comments, trailing commas, keys without quotes), Hugging Face
// strict JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace dshang::doctor {

using Json = nlohmann::json;

struct Document {
  Json value;                           // null where `error` is set
  std::string error;                    // why HJSON cannot be read from it, with line and column
  std::string not_strict;               // where it departs from JSON, and how; empty: it is JSON
  std::string too_large;                // the first number that is infinite in Python, at which hjson stops
  std::string not_strict_why;           // the first thing that HJSON has and JSON does not
  std::vector<std::string> duplicates;  // keys that occur twice in one object, as dotted paths
};

Document read_document(std::string_view text);

// Strict JSON, an object; throws std::runtime_error with one line that begins with `origin`.
Json read_object(std::string_view text, const std::string& origin);

}  // namespace dshang::doctor
