// What NCCL_DEBUG=INFO tells: nodes, ranks, networks and transports chosen, channels, communicators that were
// finished.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "explain/line.h"

namespace dshang::explain {

class NcclLines {
 public:
  void take(const Line& line);

  // Nodes of the largest communicator, 1 where nothing tells of more.
  int nodes() const;
  int ranks() const { return ranks_; }
  bool over_sockets() const { return networks_.count("Socket") || transports_.count("NET/Socket"); }
  bool between_gpus() const { return transports_.count("P2P") > 0; }
  const std::optional<Place>& no_infiniband() const { return no_infiniband_; }
  const std::optional<Place>& infiniband_disabled() const { return infiniband_disabled_; }
  const std::optional<Place>& sockets() const { return sockets_; }

  // One line a fact; none where there were no such lines.
  std::vector<std::string> facts() const;

 private:
  void take_communicator(std::string_view text, bool finished);
  void take_channel(const Line& line);

  std::set<std::string> hosts_;
  std::set<std::string> versions_, networks_;
  std::map<std::string, std::uint64_t> transports_;        // channels
  std::map<std::string, std::set<int>> begun_, finished_;  // ranks, by communicator
  std::optional<Place> no_infiniband_, infiniband_disabled_, sockets_;
  int ranks_ = 0, nodes_ = 0;
  long channels_ = -1;
};

}  // namespace dshang::explain
