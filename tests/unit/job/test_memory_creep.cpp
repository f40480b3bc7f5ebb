// memory-creep as a job meets it: from records of memory to the sentence that names the step.
#include <cmath>
#include <functional>
#include <random>
#include <regex>

#include "detectors/run.h"
#include "made.h"

using namespace dshang;
using dshang::job::made;
using dshang::job::rank;

namespace {

constexpr double kMiB = 1 << 20, kGiB = 1 << 30, kDevice = 80 * kGiB;

std::string bytes(double value) { return std::to_string(static_cast<std::uint64_t>(value)); }

// A rank whose step n has this peak; its allocator holds 1 GiB more and others 2 GiB.
std::string steps(int number, const std::function<double(int)>& peak) {
  std::string text;
  for (int n = 0; n < number; ++n) {
    double allocated = peak(n), reserved = std::min(allocated + kGiB, kDevice - 2 * kGiB);
    text += "visit step " + std::to_string(n + 1) + " at=" + std::to_string(0.1 * (n + 1)) + "\nmemory step=" +
            std::to_string(n) + " device=" + bytes(reserved) + " reserved_peak=" + bytes(reserved) +
            " allocated_peak=" + bytes(allocated) + " device_free=" + bytes(kDevice - 2 * kGiB - reserved) +
            " device_total=" + bytes(kDevice) + "\n";
  }
  return text;
}

// The step in which memory-creep says that memory runs out, -1 = it says nothing.
std::int64_t predicted(const std::string& records, double seconds) {
  auto job = made(rank(0, 1, records), seconds);
  std::smatch found;
  for (const job::Finding& finding : detect::analyse(*job).findings) {
    if (finding.type != "memory-creep") continue;
    REQUIRE(std::regex_search(finding.summary, found, std::regex("runs out in step (\\d+)")));
    return std::stoll(found[1]);
  }
  return -1;
}

}  // namespace

TEST_CASE("twenty random slopes: the step that fails is named within a tenth, well before it comes") {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> part(0, 1);
  for (int i = 0; i < 20; ++i) {
    int full_at = static_cast<int>(std::exp(std::log(100.0) + std::log(15.0) * part(random)));
    double base = (8 + 40 * part(random)) * kGiB, limit = kDevice - 2 * kGiB, slope = (limit - base) / full_at;
    double noise = 8 * slope * part(random);
    auto peak = [&](int step) {
      return base * (step < 2 ? 0.7 : 1) + slope * step + noise * (part(random) - 0.5);
    };
    std::string records = steps(full_at * 7 / 10, peak);
    INFO("run " << i << ": " << slope / kMiB << " MiB a step, full in step " << full_at);
    std::int64_t said = predicted(records, 0.1 * full_at);
    REQUIRE(said >= 0);
    CHECK(std::abs(static_cast<double>(said) - full_at) <= 0.1 * full_at);
  }
}

TEST_CASE("a saw-tooth says nothing, at whatever step it is looked at") {
  std::mt19937_64 random(6);
  std::uniform_real_distribution<double> part(0, 1);
  for (int i = 0; i < 20; ++i) {
    int period = 3 + static_cast<int>(30 * part(random)), number = 60 + static_cast<int>(300 * part(random));
    double base = 20 * kGiB, height = 50 * part(random) * kGiB;
    INFO("period " << period << ", height " << height / kGiB << " GiB, " << number << " steps");
    auto peak = [&](int step) { return base + height * (step % period) / period; };
    CHECK(predicted(steps(number, peak), 0.1 * number + 1) == -1);
  }
}
