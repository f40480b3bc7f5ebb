// What a ds_config says, asked by dotted path: "zero_optimization.offload_param.device".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/document.h"

namespace dshang::doctor {

struct Config {
  std::string path;  // as it was given
  Document document;
  std::string content{};  // as it was read; "" where it is told otherwise

  bool readable() const { return document.value.is_object(); }
  // Null where the key, or a block on the way to it, is absent.
  const Json* at(std::string_view dotted) const;
  bool has(std::string_view dotted) const { return at(dotted) != nullptr; }
  // true, or a word or number that pydantic takes for true.
  bool on(std::string_view dotted) const;
  bool is_auto(std::string_view dotted) const;
  std::optional<double> number(std::string_view dotted) const;
  std::string text(std::string_view dotted) const;  // "" where it is no text

  // zero_optimization.stage, 0 where absent or "auto" (DeepSpeed drops that word there).
  int stage() const;
  // "offload_param" or "offload_optimizer": none, cpu, nvme, or what is written there.
  std::string device(std::string_view block) const;
  // The optimizer's type in small letters; "" without a block.
  std::string optimizer() const;

  // "ds_config.json: fp16.enabled"
  std::string place(std::string_view dotted) const;
};

// As a number is written in JSON: 8, not 8.000000.
std::string number_text(double value);
// The nearest number that an int holds; infinity is one.
int whole_part(double value);
std::string lower(std::string text);
// Names and values as they are shown: of a long one its beginning.
std::string shortened(const std::string& text);
bool among(const std::string& name, const std::vector<std::string>& names);
// As pydantic reads a text for a truth value.
std::optional<bool> truth(const Json& value);

}  // namespace dshang::doctor
