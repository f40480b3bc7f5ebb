// The nodes that a launcher reaches by ssh, and whether the library can be loaded on each.
#pragma once

#include <string>
#include <vector>

namespace dshang::launch {

struct Nodes {
  std::string hostfile;
  std::string include, exclude;  // as DeepSpeed takes them: host[:slot,...]@host...
  int most = -1;                 // only the first so many
  std::string ssh_port;          // "": ssh's own
};

// Names of the hosts, each once, in the hostfile's order; throws std::runtime_error where it cannot be read
// or names none.
std::vector<std::string> hosts_of(const Nodes& nodes);

// The words of an ssh that runs `command` on the host, as pdsh would call it: with PDSH_SSH_ARGS (%h and %u
// stand for host and user; absent: ssh's defaults) and PDSH_SSH_ARGS_APPEND.
std::vector<std::string> ssh_words(const std::string& host, const std::string& command,
                                   const std::string& port, const std::string& pdsh_arguments,
                                   const std::string& appended, const std::string& user);

// What is wrong on which node, one line each: not reachable, the library is not there, is another one, cannot
// be loaded. All nodes at once, up to 20 s a library.
std::vector<std::string> check_library(const Nodes& nodes, const std::string& library);

}  // namespace dshang::launch
