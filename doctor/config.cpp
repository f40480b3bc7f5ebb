#include "doctor/config.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <limits>

namespace dshang::doctor {

const Json* Config::at(std::string_view dotted) const {
  const Json* here = &document.value;
  while (!dotted.empty()) {
    std::size_t dot = dotted.find('.');
    if (!here->is_object()) return nullptr;
    auto found = here->find(std::string(dotted.substr(0, dot)));
    if (found == here->end()) return nullptr;
    here = &*found;
    dotted = dot == std::string_view::npos ? "" : dotted.substr(dot + 1);
  }
  return here;
}

bool Config::on(std::string_view dotted) const {
  const Json* value = at(dotted);
  return value && truth(*value).value_or(false);
}

bool Config::is_auto(std::string_view dotted) const { return text(dotted) == "auto"; }

std::optional<double> Config::number(std::string_view dotted) const {
  const Json* value = at(dotted);
  if (!value || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

std::string Config::text(std::string_view dotted) const {
  const Json* value = at(dotted);
  return value && value->is_string() ? value->get<std::string>() : "";
}

int Config::stage() const {
  const Json* block = at("zero_optimization");
  if (block && block->is_boolean()) return block->get<bool>() ? 1 : 0;
  return whole_part(number("zero_optimization.stage").value_or(0));
}

std::string Config::device(std::string_view block) const {
  std::string path = "zero_optimization." + std::string(block);
  std::string named = lower(text(path + ".device"));
  if (!named.empty()) return named == "auto" ? "none" : named;
  const char* old_name =
      block == "offload_param" ? "zero_optimization.cpu_offload_param" : "zero_optimization.cpu_offload";
  return on(old_name) ? "cpu" : "none";
}

std::string Config::optimizer() const { return lower(text("optimizer.type")); }

std::string Config::place(std::string_view dotted) const {
  return path + ": " + shortened(std::string(dotted));
}

std::string number_text(double value) {
  char text[32];
  bool whole = std::floor(value) == value && std::fabs(value) < 1e15;
  std::snprintf(text, sizeof text, whole ? "%.0f" : "%.10g", value);
  return text;
}

int whole_part(double value) {
  constexpr int kLeast = std::numeric_limits<int>::min(), kMost = std::numeric_limits<int>::max();
  if (std::isnan(value)) return 0;
  return value <= kLeast ? kLeast : value >= kMost ? kMost : static_cast<int>(value);
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string shortened(const std::string& text) {
  constexpr std::size_t kMost = 120;
  return text.size() > kMost ? text.substr(0, kMost - 3) + "..." : text;
}

bool among(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<bool> truth(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) {
    double number = value.get<double>();
    if (number == 0 || number == 1) return number == 1;
    return std::nullopt;
  }
  if (!value.is_string()) return std::nullopt;
  std::string word = lower(value.get<std::string>());
  for (const char* yes : {"true", "1", "on", "yes", "t", "y"}) {
    if (word == yes) return true;
  }
  for (const char* no : {"false", "0", "off", "no", "f", "n"}) {
    if (word == no) return false;
  }
  return std::nullopt;
}

}  // namespace dshang::doctor
