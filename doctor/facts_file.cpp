#include "doctor/facts_file.h"

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <stdexcept>

#include "core/job/input_file.h"
#include "doctor/hostfile.h"
#include "doctor/resources.h"
#include "doctor/schema.h"

namespace dshang::doctor {
namespace {

namespace fs = std::filesystem;

constexpr int kMostRanks = 10000000;

struct Source {
  std::string directory;
  Facts* facts;
};
using Setter = std::function<void(const Json&, const Source&)>;

template <typename T, typename Field>
Setter set(Field Facts::*field) {
  return [field](const Json& value, const Source& source) { source.facts->*field = value.get<T>(); };
}

template <typename T, typename Field>
Setter machine(Field Machine::*field) {
  return [field](const Json& value, const Source& source) { source.facts->machine.*field = value.get<T>(); };
}

// The library takes true for 1, and cuts fractions off.
double number_in(const Json& value) {
  if (!value.is_number())
    throw Json::type_error::create(302, std::string("type must be number, but is ") + value.type_name(),
                                   &value);
  return value.get<double>();
}

int whole(const Json& value, int least, int most) {
  double number = number_in(value);
  if (std::floor(number) != number || number < least || number > most)
    throw std::runtime_error("must be a whole number from " + std::to_string(least) + " to " +
                             std::to_string(most) + ", not " + number_text(number));
  return static_cast<int>(number);
}

double amount(const Json& value) {
  double number = number_in(value);
  if (number < 0) throw std::runtime_error("must not be negative, as " + number_text(number) + " is");
  return number;
}

Setter count(std::optional<int> Facts::*field, int least, int most) {
  return [=](const Json& value, const Source& source) { source.facts->*field = whole(value, least, most); };
}

Setter count(std::optional<int> Machine::*field) {
  return [=](const Json& value, const Source& source) {
    source.facts->machine.*field = whole(value, 0, std::numeric_limits<int>::max());
  };
}

Setter bytes(std::optional<double> Machine::*field) {
  return [=](const Json& value, const Source& source) { source.facts->machine.*field = amount(value); };
}

void parameters(const Json& value, const Source& source) { source.facts->parameters = amount(value); }

std::optional<double> amount_in(const Json& object, const char* name) {
  return object.contains(name) ? std::optional(amount(object.at(name))) : std::nullopt;
}

template <typename T>
std::optional<T> optional_of(const Json& object, const char* name) {
  return object.contains(name) ? std::optional<T>(object.at(name).get<T>()) : std::nullopt;
}

void trainer(const Json& value, const Source& source) {
  std::string name = lower(value.get<std::string>());
  bool hf = name == "hf" || name == "accelerate" || name == "transformers" || name == "trainer";
  bool plain = name == "plain" || name == "deepspeed";
  if (!hf && !plain && name != "unknown") throw std::runtime_error("must be plain, hf or unknown");
  source.facts->trainer = hf ? Trainer::kHf : plain ? Trainer::kPlain : Trainer::kUnknown;
}

void config(const Json& value, const Source& source) {
  if (value.is_object()) {
    source.facts->config = Config{"ds_config", read_document(value.dump())};
    return;
  }
  fs::path path = value.get<std::string>();
  if (!path.empty() && !job::is_there(path.string())) path = fs::path(source.directory) / path;
  source.facts->config = read_config(path.string());
}

void gpu(const Json& value, const Source& source) {
  for (const Json& one : value) {
    Gpu gpu;
    gpu.name = one.value("name", "");
    gpu.compute_cap = one.value("compute_cap", "");
    gpu.memory_bytes = amount_in(one, "memory_bytes");
    gpu.foreign_bytes = amount_in(one, "foreign_bytes");
    gpu.foreign_process = one.value("foreign_process", "");
    source.facts->machine.gpu.push_back(gpu);
  }
  source.facts->machine.gpus = static_cast<int>(source.facts->machine.gpu.size());
}

void busy_ports(const Json& value, const Source& source) {
  for (const auto& [name, owner] : value.items()) {
    auto port = whole_number(&name);
    if (!port || *port < 1 || *port > 65535) throw std::runtime_error("'" + shortened(name) + "' is no port");
    source.facts->machine.busy_ports[*port] = owner.get<std::string>();
  }
}

void jit_locks(const Json& value, const Source& source) {
  for (const Json& one : value)
    source.facts->machine.jit_locks.push_back(
        {one.at("path").get<std::string>(), amount(one.at("age_s")), one.value("building", false)});
}

void places(const Json& value, const Source& source) {
  for (const auto& [path, one] : value.items()) {
    source.facts->machine.places[path] = {one.value("filesystem", ""), optional_of<bool>(one, "writable"),
                                          optional_of<bool>(one, "rotational"),
                                          amount_in(one, "free_bytes"), one.value("within", "")};
  }
}

void ops(const Json& value, const Source& source) {
  for (const auto& [name, one] : value.items())
    source.facts->machine.ops[name] = {one.value("installed", false), one.value("compatible", true)};
}

void other_nodes(const Json& value, const Source& source) {
  for (const Json& one : value) {
    Node node{one.at("name").get<std::string>(), one.value("unreachable", ""), {}};
    if (one.contains("facts")) node.facts = one.at("facts").get<std::map<std::string, std::string>>();
    if (one.contains("slots")) node.slots = whole(one.at("slots"), 0, kMostSlots);
    source.facts->other_nodes.push_back(node);
  }
}

void command(const Json& value, const Source& source) {
  std::string text = std::move(source.facts->launch.script_text);
  source.facts->launch = read_launch(value.get<std::vector<std::string>>());
  if (!text.empty()) source.facts->launch.script_text = text;
}

void script_text(const Json& value, const Source& source) {
  Launch& launch = source.facts->launch;
  if (launch.script.empty()) launch.script = "script";
  launch.script_text = value.get<std::string>();
}

const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> all = {
      {"world_size", count(&Facts::world_size, 1, kMostRanks)},
      {"nodes", count(&Facts::nodes, 1, kMostRanks)},
      {"ranks_per_node", count(&Facts::ranks_per_node, 1, kMostRanks)},
      {"local_rank", count(&Facts::local_rank, -1, kMostRanks)},  // -1: DeepSpeed's for none
      {"tp_size", count(&Facts::tp_size, 1, kMostRanks)},
      {"stage", count(&Facts::stage, 0, 3)},
      {"load_universal", set<bool>(&Facts::load_universal)},
      {"kernel_inject", set<bool>(&Facts::kernel_inject)},
      {"parameters", parameters},
      {"trainer", trainer},
      {"hf", set<Json>(&Facts::hf)},
      {"client_optimizer", set<std::string>(&Facts::client_optimizer)},
      {"checkpoint_optimizer", set<std::string>(&Facts::checkpoint_optimizer)},
      {"deepspeed_refuses", set<std::string>(&Facts::deepspeed_refuses)},
      {"ds_report_fails", set<std::string>(&Facts::ds_report_fails)},
      {"deepspeed", set<std::string>(&Facts::deepspeed)},
      {"torch", set<std::string>(&Facts::torch)},
      {"torch_cuda", set<std::string>(&Facts::torch_cuda)},
      {"transformers", set<std::string>(&Facts::transformers)},
      {"ds_config", config},
      {"command", command},
      {"script_text", script_text},
      {"environment", set<std::map<std::string, std::string>>(&Facts::environment)},
      {"exported_names", set<std::vector<std::string>>(&Facts::exported_names)},
      {"other_nodes", other_nodes},
      {"shm_bytes", bytes(&Machine::shm_bytes)},
      {"memory_bytes", bytes(&Machine::memory_bytes)},
      {"memlock_bytes", bytes(&Machine::memlock_bytes)},
      {"open_files", count(&Machine::open_files)},
      {"gpus", count(&Machine::gpus)},
      {"gpu", gpu},
      {"interfaces", machine<std::vector<std::string>>(&Machine::interfaces)},
      {"infiniband", machine<bool>(&Machine::infiniband)},
      {"driver", machine<bool>(&Machine::driver)},
      {"nvlink", machine<bool>(&Machine::nvlink)},
      {"acs_redirects", machine<bool>(&Machine::acs_redirects)},
      {"iommu_passthrough", machine<bool>(&Machine::iommu_passthrough)},
      {"cuda_available", machine<bool>(&Machine::cuda_available)},
      {"busy_ports", busy_ports},
      {"jit_locks", jit_locks},
      {"places", places},
      {"ninja", machine<bool>(&Machine::ninja)},
      {"libaio", machine<bool>(&Machine::libaio)},
      {"nvcc", machine<std::string>(&Machine::nvcc)},
      {"gxx", machine<std::string>(&Machine::gxx)},
      {"ops", ops},
      {"ops_built_with", machine<std::string>(&Machine::ops_built_with)},
      {"torch_archs", machine<std::vector<std::string>>(&Machine::torch_archs)},
      {"nvcc_archs", machine<std::vector<std::string>>(&Machine::nvcc_archs)},
      {"master_is_loopback", machine<bool>(&Machine::master_is_loopback)},
  };
  return all;
}

// "[json.exception.type_error.302] type must be boolean, but is string"
std::string reason(const Json::exception& error) {
  std::string text = error.what();
  std::size_t code = text.find("] ");
  return code == std::string::npos ? text : text.substr(code + 2);
}

std::string unknown_fact(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& [one, setter] : setters()) known.push_back(one);
  std::string near = nearest(name, known);
  return "'" + shortened(name) + "' is no fact" +
         (near.empty() ? "; docs/doctor.md lists them" : "; did you mean '" + near + "'?");
}

}  // namespace

Facts assumed_facts() {
  Facts facts;
  facts.told = true;
  facts.world_size = 8;
  facts.nodes = 1;
  facts.trainer = Trainer::kPlain;
  facts.deepspeed = "0.19.8";
  facts.torch = "2.14.1";
  return facts;
}

void apply_facts(const std::string& text, const std::string& origin, const std::string& directory,
                 Facts* facts) {
  Json object = read_object(text, origin);
  for (const auto& [name, value] : object.items()) {
    auto setter = setters().find(name);
    if (setter == setters().end()) throw std::runtime_error(origin + ": " + unknown_fact(name));
    if (value.is_null()) continue;
    try {
      setter->second(value, Source{directory, facts});
    } catch (const Json::exception& error) {
      throw std::runtime_error(origin + ": '" + name + "' has a value of the wrong type: " + reason(error));
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(origin + ": '" + name + "': " + error.what());
    }
  }
}

}  // namespace dshang::doctor
