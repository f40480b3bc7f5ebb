// Names and types of keys.
#include "doctor/rule.h"
#include "doctor/schema.h"

namespace dshang::doctor {
namespace {

constexpr const char* kConfigPage = "https://www.deepspeed.ai/docs/config-json/";

const std::vector<std::string> kRemovedTop = {"amp",
                                              "elasticity",
                                              "nebula",
                                              "compression_training",
                                              "curriculum_learning",
                                              "quantize_training",
                                              "sparse_gradients",
                                              "sparse_attention",
                                              "eigenvalue",
                                              "graph_harvesting",
                                              "progressive_layer_drop"};
const std::vector<std::string> kRemovedZero = {"mics_shard_size", "mics_hierarchical_params_gather",
                                               "zeropp_loco_param"};

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

void removed_block(const Facts& facts, const Config& config, Hits& hits) {
  if (older(facts.deepspeed, "0.19.6")) return;
  for (const std::string& name : kRemovedTop) {
    if (config.has(name))
      hits.add(config.place(name), "the block '" + name + "' belongs to a removed feature");
  }
  for (const std::string& name : kRemovedZero) {
    std::string path = "zero_optimization." + name;
    if (config.has(path)) hits.add(config.place(path), "'" + path + "' belongs to a removed feature");
  }
}

// Where the key would be read, or what it was meant to be; "" unknown.
std::string meant(const std::string& name) {
  static const std::vector<std::string> known = [] {
    std::vector<std::string> names;
    for (const TopKey& key : top_keys()) names.emplace_back(key.name);
    return names;
  }();
  std::string near = nearest(name, known);
  if (!near.empty()) return "did you mean '" + near + "'?";
  std::string section = section_with(name);
  return section.empty() ? "" : "it belongs into '" + section + "'";
}

void unknown_top_key(const Facts& facts, const Config& config, Hits& hits) {
  for (const auto& [name, value] : config.document.value.items()) {
    if (name.starts_with("_") || top_key(name) || among(name, kRemovedTop)) continue;
    std::string hint = meant(name);
    bool old = older(facts.deepspeed, "0.19.0");
    auto severity = hint.empty() || old ? std::optional(Severity::kAdvice) : std::nullopt;
    if (hint.empty()) hint = "leave it if your own script reads it";
    hits.add(config.place(name), "DeepSpeed knows no key '" + shortened(name) + "' and ignores it; " + hint,
             "", severity);
  }
}

// Calls visit(section, block) for every checked section of the config.
template <typename Visit>
void each_section(const Config& config, const Visit& visit) {
  for (const TopKey& key : top_keys()) {
    const Json* block = config.at(key.name);
    if (key.kind != TopKind::kCheckedBlock || !block || !block->is_object()) continue;
    visit(std::string(key.name), *block);
    for (const auto& [name, inner] : block->items()) {
      std::string path = std::string(key.name) + "." + name;
      if (inner.is_object() && is_section(path)) visit(path, inner);
    }
  }
}

bool unknown_in_old_version(const Facts& facts, const std::string& path) {
  return path == "zero_optimization.zenflow" && older(facts.deepspeed, "0.17.6");  // 12.12-1 says it
}

void unknown_section_key(const Facts& facts, const Config& config, Hits& hits) {
  each_section(config, [&](const std::string& section, const Json& block) {
    const std::vector<std::string> known = keys_of(section);
    for (const auto& [name, value] : block.items()) {
      std::string path = section + "." + name;
      if (section_key(section, name) || among(name, kRemovedZero) || unknown_in_old_version(facts, path))
        continue;
      std::string near = nearest(name, known);
      std::string text =
          "'" + section + "' has no key '" + shortened(name) + "', and DeepSpeed refuses unknown ones there";
      bool old = older(facts.deepspeed, "0.19.0") && near.empty();
      auto severity = old ? std::optional(Severity::kRisk) : std::nullopt;
      if (top_key(name))
        text += "; it belongs to the top level";
      else if (!near.empty())
        text += "; did you mean '" + near + "'?";
      hits.add(config.place(path), text, "", severity);
    }
  });
}

bool told_elsewhere(const std::string& section, const std::string& name) {
  return section == "zero_optimization.zenflow" && name == "topk_ratio";
}

void refused_value(const Facts&, const Config& config, Hits& hits) {
  each_section(config, [&](const std::string& section, const Json& block) {
    for (const auto& [name, value] : block.items()) {
      const SectionKey* key = section_key(section, name);
      if (!key || told_elsewhere(section, name) || fraction_refused(*key, value)) continue;
      auto why = refused(*key, value);
      if (!why) continue;
      std::string path = section + "." + name;
      hits.add(config.place(path), path + " is " + shown(value) + "; it " + *why);
    }
  });
}

void fraction(const Facts& facts, const Config& config, Hits& hits) {
  if (older(facts.deepspeed, "0.15.0")) return;  // pydantic 1 cut the fraction off
  each_section(config, [&](const std::string& section, const Json& block) {
    for (const auto& [name, value] : block.items()) {
      const SectionKey* key = section_key(section, name);
      if (!key || !fraction_refused(*key, value)) continue;
      hits.add(config.place(section + "." + name),
               name + " is " + shown(value) + "; it must be a whole number");
    }
  });
}

// What a value at the top level is refused for; "" nothing.
std::string wrong_top_type(const TopKey& key, const Json& value) {
  bool text = value.is_string();
  if (key.kind == TopKind::kNumber) {
    if (value.is_number() || value.is_null() || value == "auto") return "";
    return "a number";
  }
  if (key.kind == TopKind::kBool) return text ? "true or false, without quotes" : "";
  if (key.kind == TopKind::kOther) return "";
  bool old_form = value.is_boolean() && std::string(key.name) == "zero_optimization";
  return value.is_object() || old_form ? "" : "a block in braces";
}

void not_json(const Facts& facts, const Config& config, Hits& hits) {
  const Document& read = config.document;
  if (!read.error.empty()) return hits.add(config.path, "the config cannot be read: " + read.error);
  if (facts.trainer == Trainer::kHf && !read.not_strict.empty())
    hits.add(config.path,
             "no strict JSON (" + read.not_strict + "): DeepSpeed would read it, Hugging Face does not");
  if (read.too_large.empty()) return;
  if (facts.trainer == Trainer::kPlain)
    hits.add(config.path,
             "the config cannot be read: " + read.too_large + ", and DeepSpeed's reader stops there");
  else
    hits.add(config.path, read.too_large + ": DeepSpeed's reader stops there, Hugging Face's reads infinity",
             "", Severity::kRisk);
}

void wrong_type(const Facts& facts, Hits& hits) {
  if (!facts.config) return;
  const Config& config = *facts.config;
  not_json(facts, config, hits);
  if (!config.document.error.empty()) return;
  if (!config.readable()) return hits.add(config.path, "the config is no object in braces");
  for (const std::string& name : config.document.duplicates)
    hits.add(config.place(name), "the key '" + shortened(name) + "' is written twice");
  for (const auto& [name, value] : config.document.value.items()) {
    const TopKey* key = top_key(name);
    std::string wanted = key ? wrong_top_type(*key, value) : "";
    if (!wanted.empty())
      hits.add(config.place(name), name + " is " + shown(value) + "; it must be " + wanted);
  }
}

// Said only where no other rule explains it (rules.cpp).
void refused_by_deepspeed(const Facts& facts, const Config& config, Hits& hits) {
  if (!facts.deepspeed_refuses.empty())
    hits.add(config.path, "the installed DeepSpeed refuses the config: " + facts.deepspeed_refuses);
}

}  // namespace

const Rules& key_rules() {
  static const Rules rules = {
      {"X-38", Area::kConfig, Severity::kWillFail,
       "the file's syntax, keys written twice, types at the top level",
       "it cannot be read, or strict JSON is needed and it is not, or a value has another type than the key "
       "takes",
       "the text is no JSON, or a value is not of its key's type: a number in quotes, no block where one "
       "belongs",
       "Write JSON: texts and keys in double quotes, numbers, true and false without, a comma between "
       "values, no "
       "comment, blocks in braces, every key once.",
       "HjsonDecodeError; JSONDecodeError; Duplicate keys in DeepSpeed config", wrong_type},
      {"X-26", Area::kConfig, Severity::kWillFail, "blocks of removed features, DeepSpeed 0.19.6 and newer",
       "one is there, even switched off", "the feature was removed, and a leftover block is refused",
       "Delete the block.", "DeepSpeedConfigError: … has been removed; deepspeedai/DeepSpeed#8489",
       with_config<removed_block>},
      {"X-22", Area::kConfig, Severity::kWillFail, "keys of the sections that are checked with pydantic",
       "a key that the section does not have", "the key is misspelt or from another version",
       "Correct or remove the key.", "Extra inputs are not permitted [type=extra_forbidden",
       with_config<unknown_section_key>},
      {"X-23", Area::kConfig, Severity::kWillFail, "whole numbers in checked sections",
       "the number has a fraction", "pydantic 2 takes no fraction for a whole number (5e8 is one)",
       "Write a whole number; with \"auto\", use transformers 4.45 or newer.",
       "Input should be a valid integer, got a number with a fractional part; deepspeedai/DeepSpeed#6525",
       with_config<fraction>},
      {"12.1-5", Area::kConfig, Severity::kWillFail, "values in checked sections",
       "pydantic refuses the value", "a wrong type or value in a checked section",
       "Correct the key that is named.", "… validation errors for DeepSpeedZeroConfig",
       with_config<refused_value>},
      {"X-21", Area::kConfig, Severity::kWrongResult, "keys at the top level",
       "a key that DeepSpeed does not read",
       "the top level is not checked: a misspelt key is ignored without a word, its default holds",
       "Correct the name, or move the key into its section; names that begin with _ count as comments.",
       kConfigPage, with_config<unknown_top_key>},
      {"D-02", Area::kConfig, Severity::kWillFail, "DeepSpeed's own check of the config (--validate)",
       "it raises, and no other rule tells why", "see the error", "Correct what the error names.",
       kConfigPage, with_config<refused_by_deepspeed>},
  };
  return rules;
}

}  // namespace dshang::doctor
