// What a Hugging Face config.json says of a model; names differ between families.
#pragma once

#include <initializer_list>
#include <optional>

#include "doctor/document.h"

namespace dshang::doctor {

// The value under the first of the names, in the config or in its text_config; empty where none is there.
std::optional<double> of_model(const Json& config, std::initializer_list<const char*> names);
std::optional<double> heads_of(const Json& config);
std::optional<double> kv_heads_of(const Json& config);  // heads_of where keys and values have their own each
// Estimated from the sizes of a decoder; empty for mixtures of experts and where a size is missing.
std::optional<double> parameters_of(const Json& config);

}  // namespace dshang::doctor
