// The page that Prometheus reads (DSHANG_METRICS=host:port): GET /metrics.
//
// Off unless asked for.  It answers on a thread of its own, from the text that it was given last: a reader
// never waits for the analysis, nor the analysis for a reader.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace dshang::monitor {

class MetricsServer {
 public:
  // Listens where DSHANG_METRICS says, or does not; `trouble` then says why, in one line ("" else).
  MetricsServer();
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  const std::string& trouble() const { return trouble_; }

  // To be called at every round; asks for a new page once a second while it listens.
  void round(std::uint64_t now_ns, const std::function<std::string()>& page);

 private:
  struct Listening;
  std::unique_ptr<Listening> listening_;
  std::string trouble_;
  std::uint64_t next_ns_ = 0;
};

}  // namespace dshang::monitor
