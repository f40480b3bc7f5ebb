#include "explain/nccl_lines.h"

#include <algorithm>

#include "explain/words.h"

namespace dshang::explain {
namespace {

constexpr std::size_t kMostHosts = 10000;
constexpr std::size_t kMostCommunicators = 1000;
constexpr std::size_t kFewShown = 8;

bool has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

// The number behind "nranks ".
int number_behind(std::string_view text, std::string_view word) {
  std::size_t at = text.find(word);
  if (at == std::string_view::npos) return -1;
  at += word.size();
  return static_cast<int>(read_number(text, &at));
}

std::string word_behind(std::string_view text, std::string_view word) {
  std::size_t at = text.find(word);
  if (at == std::string_view::npos) return "";
  std::string_view rest = text.substr(at + word.size());
  return std::string(rest.substr(0, std::min(rest.find_first_of(" \r\n"), std::size_t{40})));
}

// host:pid:tid [gpu] NCCL INFO …
std::string host_of(std::string_view text) {
  std::size_t end = text.find(" NCCL "), colon = text.find(':');
  if (end == std::string_view::npos || colon == std::string_view::npos || colon > end) return "";
  std::size_t begin = text.rfind(' ', colon);
  return std::string(text.substr(begin == std::string_view::npos ? 0 : begin + 1,
                                 colon - (begin == std::string_view::npos ? 0 : begin + 1)));
}

}  // namespace

void NcclLines::take(const Line& line) {
  std::string_view text = line.text;
  if (!has(text, "NCCL ")) return;
  if (hosts_.size() < kMostHosts) {
    std::string host = host_of(text);
    if (!host.empty()) hosts_.insert(host);
  }
  if (has(text, "NCCL version ")) versions_.insert(word_behind(text, "NCCL version "));
  if (has(text, " via ")) return take_channel(line);
  if (has(text, "Using network ")) {
    networks_.insert(word_behind(text, "Using network "));
    if (networks_.count("Socket") && !sockets_) sockets_ = line.place;
  }
  if (has(text, "NET/IB : No device found") && !no_infiniband_) no_infiniband_ = line.place;
  if (has(text, "NCCL_IB_DISABLE set by environment to 1") && !infiniband_disabled_)
    infiniband_disabled_ = line.place;
  nodes_ = std::max(nodes_, number_behind(text, " nNodes "));
  ranks_ = std::max({ranks_, number_behind(text, " nranks "), number_behind(text, " nRanks ")});
  int channels = number_behind(text, "NCCL INFO ");
  if (channels >= 0 && has(text, " coll channels"))
    channels_ = channels_ < 0 ? channels : std::min<long>(channels_, channels);
  if (has(text, "Init START")) take_communicator(text, false);
  if (has(text, "Init COMPLETE")) take_communicator(text, true);
}

void NcclLines::take_communicator(std::string_view text, bool finished) {
  std::string id = word_behind(text, " commId ");
  int rank = number_behind(text, " rank ");
  if (id.empty() || rank < 0 || begun_.size() >= kMostCommunicators) return;
  begun_[id].insert(rank);
  if (finished) finished_[id].insert(rank);
}

// Channel 00/0 : 7[ca000] -> 6[c7000] [send] via NET/Socket/3/GDRDMA
void NcclLines::take_channel(const Line& line) {
  std::string way = word_behind(line.text, " via ");
  bool net = way.starts_with("NET/");
  std::size_t slash = way.find('/', net ? 4 : 0);
  ++transports_[way.substr(0, slash)];
  if (way.starts_with("NET/Socket") && !sockets_) sockets_ = line.place;
}

int NcclLines::nodes() const {
  if (nodes_ > 0) return nodes_;
  // Only ranks of other nodes are reached over a network.
  bool net = std::any_of(transports_.begin(), transports_.end(),
                         [](const auto& one) { return one.first.starts_with("NET/"); });
  return std::max<int>(net ? 2 : 1, static_cast<int>(hosts_.size()));
}

std::vector<std::string> NcclLines::facts() const {
  std::vector<std::string> facts;
  if (ranks_ > 0 || !networks_.empty() || !transports_.empty()) {
    std::string text = "NCCL";
    if (!versions_.empty()) text += " " + joined(versions_);
    if (ranks_ > 0)
      text += ", " + counted(static_cast<std::uint64_t>(ranks_), "rank") + " on " +
              counted(static_cast<std::uint64_t>(nodes()), "node");
    if (!networks_.empty()) text += ", network " + joined(networks_);
    std::string ways;
    for (const auto& [way, count] : transports_)
      ways += (ways.empty() ? "" : ", ") + std::to_string(count) + " " + way;
    if (!ways.empty()) text += "; channels: " + ways;
    if (channels_ >= 0) text += "; " + std::to_string(channels_) + " channels (rings) for collectives";
    facts.push_back(text);
  }
  for (const auto& [id, begun] : begun_) {
    auto found = finished_.find(id);
    std::vector<int> left;
    for (int rank : begun) {
      if (found == finished_.end() || !found->second.count(rank)) left.push_back(rank);
    }
    if (left.empty() || facts.size() >= kFewShown) continue;
    facts.push_back("NCCL communicator " + id + ": " + ranks_text(left) +
                    " began to create it and did not finish");
  }
  return facts;
}

}  // namespace dshang::explain
