// The keys of a ds_config of DeepSpeed 0.19.8: which there are, and what they take.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/config.h"

namespace dshang::doctor {

// What a top-level key takes.
enum class TopKind { kNumber, kBool, kBlock, kCheckedBlock, kOther };

struct TopKey {
  const char* name;
  TopKind kind;
};

const std::vector<TopKey>& top_keys();
const TopKey* top_key(std::string_view name);

// A key of a section that DeepSpeed checks with pydantic; `section` is its dotted path.
enum class Kind { kBool, kInt, kNumber, kText, kOneOf, kList, kBlock, kAny };
enum class Limit { kNone, kNotNegative, kPositive, kShare, kInnerShare };  // share: 0 to 1

struct SectionKey {
  const char* section;
  const char* name;
  Kind kind;
  Limit limit = Limit::kNone;
  const char* values = "";  // of kOneOf, separated by blanks
};

bool is_section(std::string_view path);
const SectionKey* section_key(std::string_view section, std::string_view name);
std::vector<std::string> keys_of(std::string_view section);
// The checked section that has a key of this name; "" none.
std::string section_with(std::string_view name);

// The name among `known` that is most like `name`; "" when none is near.
std::string nearest(const std::string& name, const std::vector<std::string>& known);

// Why pydantic refuses the value; empty: it takes it.
std::optional<std::string> refused(const SectionKey& key, const Json& value);
// A number with a fraction where a whole one is wanted: pydantic's int_from_float.
bool fraction_refused(const SectionKey& key, const Json& value);

}  // namespace dshang::doctor
