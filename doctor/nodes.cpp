#include "doctor/nodes.h"

#include <cstdlib>
#include <optional>
#include <sstream>

namespace dshang::doctor {
namespace {

constexpr std::size_t kMostNames = 4;
constexpr double kUnlimited = 1e18, kMostCounted = 1e9;

// What a node answered, by name.
class Answers {
 public:
  explicit Answers(const Node& node) : facts_(node.facts) {}
  // "" where it did not say.
  std::string text(const char* name) const {
    auto found = facts_.find(name);
    return found == facts_.end() ? "" : found->second;
  }
  std::string version(const char* name) const {
    std::string said = text(name);
    return said == kNone ? "" : said;
  }
  std::optional<double> number(const char* name) const {
    std::string said = text(name);
    if (said == "unlimited") return kUnlimited;
    char* end = nullptr;
    double value = std::strtod(said.c_str(), &end);
    return end == said.c_str() ? std::nullopt : std::optional(value);
  }
  std::optional<int> count(const char* name) const {
    auto value = number(name);
    return value && *value >= 0 && *value < kMostCounted ? std::optional(static_cast<int>(*value))
                                                         : std::nullopt;
  }
  std::optional<bool> yes(const char* name) const {
    std::string said = text(name);
    return said.empty() ? std::nullopt : std::optional(said == "yes");
  }

 private:
  const std::map<std::string, std::string>& facts_;
};

}  // namespace

Facts facts_of_node(const Facts& facts, const Node& node) {
  const Answers said(node);
  Facts result = facts;
  result.other_nodes.clear();
  result.environment.erase("LOCAL_RANK");
  result.local_rank.reset();
  if (node.slots) result.ranks_per_node = node.slots;
  Machine& machine = result.machine = Machine();
  machine.shm_bytes = said.number("shm_bytes");
  machine.memlock_bytes = said.number("memlock_bytes");
  machine.open_files = said.count("open_files");
  machine.gpus = said.count("gpus");
  machine.nvcc = said.text("nvcc");
  machine.gxx = said.text("gxx");
  machine.ninja = said.yes("ninja");
  machine.libaio = said.yes("libaio");
  machine.ops_built_with = said.version("ops_built_with");
  std::istringstream ops(said.version("ops"));
  for (std::string op; ops >> op;) machine.ops[op] = {true, true};
  if (!said.text("driver").empty()) machine.driver = said.text("driver") != kNone;
  result.deepspeed = said.version("deepspeed");
  result.torch = said.version("torch");
  if (result.torch != facts.torch) result.torch_cuda.clear();
  return result;
}

std::string node_names(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMostNames; ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > kMostNames) text += " and " + std::to_string(names.size() - kMostNames) + " more";
  return text;
}

}  // namespace dshang::doctor
