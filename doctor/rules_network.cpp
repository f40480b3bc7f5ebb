// Ports, interfaces, InfiniBand, peer-to-peer.
#include <sstream>

#include "doctor/rule.h"

namespace dshang::doctor {
namespace {

constexpr int kDefaultPort = 29500;  // of DeepSpeed and torch

std::optional<int> port_number(const std::string& text) {
  if (text.empty() || text.size() > 5 || text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  int port = std::stoi(text);
  return port > 0 && port < 65536 ? std::optional<int>(port) : std::nullopt;
}

struct Port {
  std::string where;
  std::optional<int> number;
  std::string text;
  bool chosen = true;  // else the default
};

Port chosen_port(const Facts& facts) {
  auto option = facts.launch.options.find("master_port");
  if (option != facts.launch.options.end())
    return {"--master_port", port_number(option->second), option->second};
  if (const std::string* port = facts.env("MASTER_PORT")) return {"MASTER_PORT", port_number(*port), *port};
  return {"the default port", kDefaultPort, "", false};
}

int other_port(int port) { return port + 11 < 65536 ? port + 11 : kDefaultPort; }

void port_in_use(const Facts& facts, Hits& hits) {
  Port port = chosen_port(facts);
  if (!port.number)
    return hits.add(port.where, port.where + " is '" + port.text + "', no port number (1 to 65535)");
  auto busy = facts.machine.busy_ports.find(*port.number);
  if (busy == facts.machine.busy_ports.end()) return;
  std::string owner = busy->second.empty() ? "another process" : busy->second;
  std::string number = std::to_string(*port.number);
  hits.add(port.where, "port " + number + " is in use here by " + owner,
           "See `ss -ltnp 'sport = :" + number +
               "'`; end that process, or choose another: deepspeed --master_port " +
               std::to_string(other_port(*port.number)) + " …; torchrun --rdzv-endpoint=localhost:0.",
           port.chosen || !facts.launch.words.empty() || facts.told ? std::nullopt
                                                                    : std::optional(Severity::kRisk));
}

// NCCL_SOCKET_IFNAME as NCCL reads it: prefixes; = before the list: whole names, ^: all but these.
std::vector<std::string> chosen(const std::string& text, const std::vector<std::string>& interfaces) {
  bool exclude = text.starts_with("^"), exact = false;
  std::string list = text.substr(exclude ? 1 : 0);
  if (list.starts_with("=")) exact = true, list.erase(0, 1);
  std::vector<std::string> result;
  for (const std::string& interface : interfaces) {
    bool listed = false;
    std::istringstream names(list);
    for (std::string name; std::getline(names, name, ',');) {
      name = name.substr(0, name.find(':'));
      if (!name.empty() && (exact ? interface == name : interface.starts_with(name))) listed = true;
    }
    if (listed != exclude) result.push_back(interface);
  }
  return result;
}

bool leads_nowhere(const std::string& interface) {
  return interface == "lo" || interface.starts_with("docker") || interface.starts_with("virbr");
}

void interface(const Facts& facts, const char* name, const std::string& machine,
               const std::vector<std::string>& interfaces, Hits& hits) {
  const std::string* text = facts.env(name);
  if (!text || text->empty()) return;
  std::string said = std::string(name) + "=" + *text, there;
  for (const std::string& one : interfaces) there += (there.empty() ? "" : ", ") + one;
  std::vector<std::string> left = chosen(*text, interfaces);
  if (left.empty()) return hits.add(name, said + " matches no interface of " + machine + " (" + there + ")");
  bool nowhere = true;
  for (const std::string& one : left) nowhere = nowhere && leads_nowhere(one);
  if (nowhere && facts.nodes.value_or(1) > 1)
    hits.add(name, said + " leaves only " + left.front() + ", which leads to no other node");
}

void interfaces(const Facts& facts, const char* name, Hits& hits) {
  if (facts.machine.interfaces) interface(facts, name, "this machine", *facts.machine.interfaces, hits);
  for (const Node& node : facts.other_nodes) {
    auto told = node.facts.find("interfaces");
    if (told == node.facts.end()) continue;
    std::istringstream words(told->second);
    std::vector<std::string> names;
    for (std::string word; words >> word;) names.push_back(word);
    interface(facts, name, node.name, names, hits);
  }
}

void connect(const Facts& facts, Hits& hits) {
  if (facts.env("NCCL_PORT_RANGE")) {
    hits.add("NCCL_PORT_RANGE",
             "NCCL_PORT_RANGE has no effect: there is no such variable, NCCL uses ephemeral ports",
             "Open all TCP ports between the nodes, or narrow `sysctl net.ipv4.ip_local_port_range` and open "
             "that range.",
             Severity::kRisk);
  }
  interfaces(facts, "NCCL_SOCKET_IFNAME", hits);
  interfaces(facts, "GLOO_SOCKET_IFNAME", hits);
  const std::string* address = facts.env("MASTER_ADDR");
  bool loopback = address && (address->starts_with("127.") || *address == "localhost" || *address == "::1");
  if (facts.nodes.value_or(1) > 1 && address && (loopback || facts.machine.master_is_loopback == true))
    hits.add("MASTER_ADDR",
             "MASTER_ADDR=" + *address + " leads to each node itself, and there are " +
                 std::to_string(*facts.nodes) + " nodes",
             "Set MASTER_ADDR to the first node's address in the network of the job.");
}

void infiniband_off(const Facts& facts, Hits& hits) {
  const std::string* off = facts.env("NCCL_IB_DISABLE");
  if (!off || *off != "1" || facts.nodes.value_or(1) < 2 || facts.machine.infiniband != true) return;
  hits.add("NCCL_IB_DISABLE",
           "InfiniBand is there and switched off by NCCL_IB_DISABLE=1: the nodes talk over sockets");
}

void peer_to_peer(const Facts& facts, Hits& hits) {
  const Machine& machine = facts.machine;
  const std::string* off = facts.env("NCCL_P2P_DISABLE");
  if ((off && *off == "1") || machine.gpus.value_or(0) < 2 || machine.nvlink == true) return;
  if (machine.acs_redirects == true && machine.iommu_passthrough != true)
    hits.add("PCIe",
             "PCIe bridges redirect traffic between GPUs (ACS) through the IOMMU, and there is no NVLink");
}

}  // namespace

const Rules& network_rules() {
  static const Rules rules = {
      {"12.3-3", Area::kEnv, Severity::kWillFail,
       "--master_port, MASTER_PORT (default 29500); the port is tried",
       "another process listens there, or it is no port number", "an old rank or a second job has the port",
       "Choose another port: deepspeed --master_port 29511 …",
       "EADDRINUSE; errno: 98 - Address already in use", port_in_use},
      {"12.9-3", Area::kEnv, Severity::kWillHang,
       "NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME beside the interfaces, MASTER_ADDR, NCCL_PORT_RANGE",
       "no interface matches, MASTER_ADDR is the node itself, or the variable does not exist",
       "ranks cannot reach each other",
       "Name the interface that has MASTER_ADDR's network (`ip -br addr`), or leave the variable out.",
       "Bootstrap : no socket interface found; The client socket has timed out", connect},
      {"12.9-4", Area::kEnv, Severity::kSlow, "NCCL_IB_DISABLE, InfiniBand ports, number of nodes",
       "InfiniBand is active and switched off, several nodes", "0 is the default; something set 1",
       "Unset NCCL_IB_DISABLE.", "NCCL_IB_DISABLE set by environment to 1; Using network Socket",
       infiniband_off},
      {"X-10", Area::kMachine, Severity::kWillHang, "ACS of PCIe bridges, IOMMU, NVLink, NCCL_P2P_DISABLE",
       "ACS redirects, no iommu=pt, no NVLink, two GPUs or more", "redirected traffic between GPUs is lost",
       "Boot with iommu=pt or disable ACS/VT-d; to confirm, run once with NCCL_P2P_DISABLE=1.",
       "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html; NVIDIA/nccl#631",
       peer_to_peer},
  };
  return rules;
}

}  // namespace dshang::doctor
