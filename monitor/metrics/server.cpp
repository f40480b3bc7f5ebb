#include "monitor/metrics/server.h"

#include <httplib.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "core/rank/param.h"
#include "monitor/clock.h"
#include "monitor/metrics/page.h"

namespace dshang::monitor {
namespace {

DSHANG_PARAM(string, METRICS, "", "host:port",
             "where the monitor serves OpenMetrics at /metrics (step, rate, last progress, memory, "
             "findings); not set: nowhere");

constexpr std::uint64_t kEvery = 1 * kSecond;
constexpr int kPatienceSeconds = 5;  // for a reader that says nothing
constexpr std::size_t kLongestRequest = 4096;
constexpr std::size_t kReaders = 4;  // at once; a request that drips in keeps one of them

struct Place {
  std::string host;
  int port;
};

// "host:port", "[::1]:port" or ":port" for every address of the machine.
std::optional<Place> place_of(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  Place place{text.substr(0, colon), 0};
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data() + colon + 1, end, place.port);
  if (error != std::errc() || last != end || place.port < 1 || place.port > 65535) return std::nullopt;
  if (place.host.size() > 2 && place.host.front() == '[' && place.host.back() == ']') {
    place.host = place.host.substr(1, place.host.size() - 2);
  }
  if (place.host.empty()) place.host = "0.0.0.0";
  return place;
}

// Signals are the monitor's main thread's.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

struct MetricsServer::Listening {
  httplib::Server server;
  std::mutex mutex;
  std::string page = "# EOF\n";
  std::thread thread;

  Listening() {
    server.new_task_queue = [] { return new httplib::ThreadPool(kReaders); };
    server.set_read_timeout(kPatienceSeconds);
    server.set_write_timeout(kPatienceSeconds);
    server.set_keep_alive_max_count(1);
    server.set_payload_max_length(kLongestRequest);
    // The library's own choice would let two jobs listen in one place, and answer for either.
    server.set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server.Get("/metrics", [this](const httplib::Request&, httplib::Response& answer) {
      std::lock_guard<std::mutex> lock(mutex);
      answer.set_content(page, kMetricsType);
    });
  }
  ~Listening() {
    server.stop();
    if (thread.joinable()) thread.join();
  }
};

MetricsServer::MetricsServer() {
  const std::string wanted = param_METRICS.value();
  if (wanted.empty() || wanted == "off") return;
  const std::optional<Place> place = place_of(wanted);
  if (!place) {
    trouble_ =
        "DSHANG_METRICS=" + wanted + " is not host:port with a port from 1 to 65535; no metrics are served";
    return;
  }
  auto listening = std::make_unique<Listening>();
  errno = 0;
  if (!listening->server.bind_to_port(place->host.c_str(), place->port)) {
    trouble_ = "DSHANG_METRICS=" + wanted + ": cannot listen there" +
               (errno ? std::string(" (") + std::strerror(errno) + ")" : "") + "; no metrics are served";
    return;
  }
  try {
    const SignalsBlocked blocked;
    listening->thread = std::thread([server = &listening->server] { server->listen_after_bind(); });
    listening_ = std::move(listening);
  } catch (const std::system_error& error) {
    trouble_ = std::string("DSHANG_METRICS: no thread to serve them: ") + error.what();
  }
}

MetricsServer::~MetricsServer() = default;

void MetricsServer::round(std::uint64_t now_ns, const std::function<std::string()>& page) {
  if (!listening_ || now_ns < next_ns_) return;
  next_ns_ = now_ns + kEvery;
  std::string text = page();
  const std::lock_guard<std::mutex> lock(listening_->mutex);
  listening_->page = std::move(text);
}

}  // namespace dshang::monitor
