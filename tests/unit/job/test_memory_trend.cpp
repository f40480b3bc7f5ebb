// Steady growth: found, with the step in which it reaches the limit; and what only looks like it.
#include <cmath>
#include <functional>
#include <random>

#include "catch.h"
#include "detectors/memory_trend.h"

using namespace dshang::detect;

namespace {

constexpr double kGiB = 1 << 30, kLimit = 80 * kGiB, kLeast = 0.002 * kLimit;

std::vector<MemoryPoint> series(std::size_t steps, const std::function<double(double)>& bytes) {
  std::vector<MemoryPoint> points;
  for (std::size_t i = 0; i < steps; ++i)
    points.push_back({static_cast<std::int64_t>(i), bytes(static_cast<double>(i))});
  return points;
}

// Whether any look at it, after each of its steps, would have told growth.
bool ever_told(const std::vector<MemoryPoint>& points) {
  for (std::size_t n = 1; n <= points.size(); ++n) {
    std::vector<MemoryPoint> so_far(points.begin(), points.begin() + static_cast<std::ptrdiff_t>(n));
    if (steady_growth(so_far, kLimit, kLeast)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("the step in which memory runs out is predicted within a tenth, for random slopes") {
  std::mt19937_64 random(20240611);
  std::uniform_real_distribution<double> part(0, 1);
  for (int i = 0; i < 20; ++i) {
    double base = (10 + 40 * part(random)) * kGiB;
    double full_at = std::exp(std::log(80.0) + std::log(5000.0 / 80.0) * part(random));
    double slope = (kLimit - base) / full_at, noise = part(random) * slope * 10;
    auto points = series(static_cast<std::size_t>(full_at), [&](double step) {
      double warm_up = step < 2 ? -0.3 * base : 0;
      return base + warm_up + slope * step + noise * (part(random) - 0.5);
    });
    bool told_in_time = false;
    for (std::size_t n = 40; n <= points.size(); n += 1 + points.size() / 40) {
      std::vector<MemoryPoint> so_far(points.begin(), points.begin() + static_cast<std::ptrdiff_t>(n));
      auto trend = steady_growth(so_far, kLimit, kLeast);
      if (!trend) continue;
      INFO("run " << i << ", after " << n << " steps of " << full_at);
      CHECK(std::abs(static_cast<double>(trend->full_at) - full_at) <= 0.1 * full_at);
      told_in_time = told_in_time || static_cast<double>(n) < 0.75 * full_at;
    }
    INFO("run " << i << ": full in step " << full_at);
    CHECK(told_in_time);
  }
}

TEST_CASE("a saw-tooth is no steady growth, however high its teeth are") {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> part(0, 1);
  for (int i = 0; i < 20; ++i) {
    double period = 3 + std::floor(32 * part(random)), height = 40 * part(random) * kGiB;
    INFO("period " << period << ", height " << height / kGiB << " GiB");
    CHECK_FALSE(ever_told(
        series(600, [&](double step) { return 20 * kGiB + height * std::fmod(step, period) / period; })));
  }
}

TEST_CASE("slow teeth that stay far below the limit are no steady growth") {
  CHECK_FALSE(
      ever_told(series(900, [](double step) { return 30 * kGiB + 4 * kGiB * std::fmod(step, 200) / 200; })));
}

TEST_CASE("after its first fall a slow tooth is known as one") {
  auto points = series(900, [](double step) { return 20 * kGiB + 50 * kGiB * std::fmod(step, 250) / 250; });
  for (std::size_t n = 260; n <= points.size(); n += 7) {
    std::vector<MemoryPoint> so_far(points.begin(), points.begin() + static_cast<std::ptrdiff_t>(n));
    CHECK_FALSE(steady_growth(so_far, kLimit, kLeast));
  }
}

TEST_CASE("a warm-up and a plateau are no steady growth") {
  CHECK_FALSE(ever_told(series(400, [](double step) { return 60 * kGiB * (1 - std::exp(-step / 8)); })));
  CHECK_FALSE(ever_told(series(400, [](double step) { return std::min(10 + 5 * step, 60.0) * kGiB; })));
  CHECK_FALSE(ever_told(series(400, [](double) { return 79 * kGiB; })));
}

TEST_CASE("batches of changing length are no steady growth") {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> part(0, 1);
  CHECK_FALSE(ever_told(series(600, [&](double) { return (30 + 30 * part(random)) * kGiB; })));
}

TEST_CASE("single larger steps hide no growth") {
  auto points = series(300, [](double step) {
    return 20 * kGiB + 0.1 * kGiB * step + (std::fmod(step, 50) == 49 ? 15 * kGiB : 0);
  });
  auto trend = steady_growth(points, kLimit, kLeast);
  REQUIRE(trend);
  CHECK(std::abs(static_cast<double>(trend->full_at) - 600) <= 30);
}

TEST_CASE("growth that would take a hundred times as long as it was seen is not told") {
  CHECK_FALSE(steady_growth(series(200, [](double step) { return 10 * kGiB + 0.003 * kGiB * step; }), kLimit,
                            kLeast));
}
