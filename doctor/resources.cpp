#include "doctor/resources.h"

#include <algorithm>
#include <sstream>

#include "doctor/hostfile.h"

namespace dshang::doctor {
namespace {

constexpr const char* kLocal = "localhost";

// A host of which nobody knows the slots has none here.
using Slots = std::optional<std::set<int>>;
using Pool = std::vector<std::pair<std::string, Slots>>;

std::set<int> first_slots(int count) {
  std::set<int> slots;
  for (int slot = 0; slot < count; ++slot) slots.insert(slots.end(), slot);
  return slots;
}

Pool pool_of(const Facts& facts) {
  if (!facts.hostfile) {
    int gpus = facts.machine.gpus.value_or(0);
    return {{kLocal, gpus > 0 ? Slots(first_slots(gpus)) : std::nullopt}};
  }
  Pool pool;
  for (const std::string& line : facts.hostfile->lines) {
    auto entry = entry_of(line);
    if (entry) pool.emplace_back(entry->host, entry->too_many ? Slots() : Slots(first_slots(entry->slots)));
  }
  return pool;
}

Pool::value_type* host_in(Pool& pool, const std::string& name) {
  auto found = std::find_if(pool.begin(), pool.end(), [&](const auto& one) { return one.first == name; });
  return found == pool.end() ? nullptr : &*found;
}

// launcher/runner.py, parse_resource_filter: NAME[:SLOT,…]@….  Returns why it is refused.
std::string filter(const std::string& text, bool include, const Facts& facts, Pool* pool) {
  Pool named;
  std::istringstream nodes(text);
  for (std::string node; std::getline(nodes, node, '@');) {
    std::size_t colon = node.find(':');
    std::string name = node.substr(0, colon);
    auto* host = host_in(*pool, name);
    if (!host)
      return "there is no host '" + shortened(name) + "' in " +
             (facts.hostfile ? facts.hostfile->path : std::string("this machine, which is localhost"));
    if (!host_in(named, name)) named.emplace_back(name, std::set<int>());
    auto* chosen = host_in(named, name);
    if (colon == std::string::npos) {
      chosen->second = host->second;
      continue;
    }
    auto slots = device_numbers(node.substr(colon + 1));
    if (!slots) return "'" + shortened(node) + "' is no list of slots";
    for (int slot : *slots) {
      if (host->second && !host->second->contains(slot))
        return name + " has no slot " + std::to_string(slot) + ", it has " +
               std::to_string(host->second->size());
      if (chosen->second) chosen->second->insert(slot);
    }
  }
  Pool result;
  for (auto& [name, slots] : *pool) {
    auto* chosen = host_in(named, name);
    if (include ? !chosen : chosen && !chosen->second) continue;
    Slots left = include ? chosen->second : slots;
    if (!include && chosen && slots) {
      for (int slot : *chosen->second) left->erase(slot);
    }
    if (!left || !left->empty()) result.emplace_back(name, left);
  }
  *pool = std::move(result);
  return pool->empty() ? "no slot is left" : "";
}

}  // namespace

const std::string* launch_option(const Launch& launch, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    auto found = launch.options.find(name);
    if (found != launch.options.end()) return &found->second;
  }
  return nullptr;
}

std::optional<int> whole_number(const std::string* text) {
  if (!text || text->empty() || text->size() > 7 ||
      text->find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoi(*text);
}

std::optional<std::set<int>> device_numbers(const std::string& list) {
  std::set<int> numbers;
  std::istringstream items(list + ",");
  for (std::string item; std::getline(items, item, ',');) {
    item.erase(std::remove(item.begin(), item.end(), ' '), item.end());
    auto number = whole_number(&item);
    if (!number) return std::nullopt;
    numbers.insert(*number);
  }
  return numbers;
}

std::optional<Resources> resources_of(const Facts& facts) {
  const Launch& launch = facts.launch;
  if (launch.launcher != "deepspeed" || launch.options.contains("world_info")) return std::nullopt;
  bool unseen = facts.told && !facts.hostfile && launch_option(launch, {"hostfile", "H"});
  if (unseen) return std::nullopt;
  auto text = [&](std::initializer_list<const char*> names) {
    const std::string* value = launch_option(launch, names);
    return value ? *value : "";
  };
  std::string include = text({"include", "i"}), exclude = text({"exclude", "e"});
  auto nodes = whole_number(launch_option(launch, {"num_nodes"}));
  auto gpus = whole_number(launch_option(launch, {"num_gpus", "num_accelerators"}));
  Resources resources;
  auto refuse = [&](const std::string& why) {
    resources.refused = why;
    return resources;
  };
  if (!include.empty() && !exclude.empty()) return refuse("--include and --exclude exclude each other");
  bool filtered = !include.empty() || !exclude.empty() || nodes.value_or(0) > 1 || gpus.value_or(0) > 0;
  const std::string* visible = facts.env("CUDA_VISIBLE_DEVICES");
  if (!facts.hostfile && !filtered && visible && !visible->empty()) {
    if (!device_numbers(*visible)) return std::nullopt;
    resources.of_variable = true;
    include = std::string(kLocal) + ":" + *visible;
  }
  if ((nodes || gpus) && (!include.empty() || !exclude.empty())) {
    std::string number = nodes ? "--num_nodes" : "--num_gpus";
    return refuse(number +
                  (resources.of_variable
                       ? " beside CUDA_VISIBLE_DEVICES, of which the launcher makes an --include"
                       : " beside --include or --exclude") +
                  ": one of the two only");
  }
  if (!facts.hostfile && nodes.value_or(0) > 1)
    return refuse("--num_nodes " + std::to_string(*nodes) + " needs a hostfile, and there is none");
  Pool pool = pool_of(facts);
  if (pool.empty()) return std::nullopt;
  std::string chosen = include.empty() ? exclude : include, why;
  if (!chosen.empty()) why = filter(chosen, !include.empty(), facts, &pool);
  if (!why.empty())
    return refuse((include.empty() ? "--exclude " : "--include ") + shortened(chosen) + ": " + why);
  if (nodes.value_or(0) > 0 && pool.size() > static_cast<std::size_t>(*nodes))
    pool.erase(pool.begin() + *nodes, pool.end());
  for (auto& [name, slots] : pool) {
    if (gpus.value_or(0) > 0) slots = first_slots(std::min(*gpus, kMostSlots));
    if (!slots) return std::nullopt;
    resources.hosts.emplace_back(name, *slots);
  }
  return resources;
}

}  // namespace dshang::doctor
