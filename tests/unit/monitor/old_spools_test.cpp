#include "monitor/old_spools.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "catch.h"
#include "monitor/server.h"

using namespace dshang::monitor;
namespace fs = std::filesystem;

namespace {

class Spools {
 public:
  Spools() {
    char name[] = "/tmp/dshang-unit-XXXXXX";
    path = mkdtemp(name);
  }
  ~Spools() { fs::remove_all(path); }

  // The folder of a job as a monitor leaves it, last written so long ago.
  fs::path leave(const std::string& name, std::chrono::hours ago) {
    fs::path folder = path / name, attempt = folder / "attempt-1";
    fs::create_directories(attempt);
    std::ofstream(attempt / "rank-0.77.flight") << "records";
    fs::permissions(folder, fs::perms::owner_all);
    auto then = fs::file_time_type::clock::now() - ago;
    for (const fs::path& one : {attempt / "rank-0.77.flight", attempt, folder})
      fs::last_write_time(one, then);
    return folder;
  }

  int remove() { return remove_old_spools(path.string(), getuid()); }

  fs::path path;
};

constexpr std::chrono::hours kOld = kSpoolIsOld + std::chrono::hours(1);

}  // namespace

TEST_CASE("what jobs left a week ago is removed, and nothing younger") {
  Spools spools;
  fs::path old = spools.leave("00000000000000a1", kOld);
  fs::path young = spools.leave("00000000000000a2", kSpoolIsOld - std::chrono::hours(1));
  fs::path written = spools.leave("00000000000000a3", kOld);
  std::ofstream(written / "attempt-1" / "monitor.log") << "just now";
  CHECK(spools.remove() == 1);
  CHECK_FALSE(fs::exists(old));
  CHECK(fs::exists(young / "attempt-1" / "rank-0.77.flight"));
  CHECK(fs::exists(written / "attempt-1" / "rank-0.77.flight"));
  CHECK(spools.remove() == 0);
}

TEST_CASE("what a monitor still owns stays") {
  Spools spools;
  constexpr std::uint64_t kJob = 0xd5a0000000000b01;
  fs::path folder = spools.leave("d5a0000000000b01", kOld);
  {
    Server monitor;
    REQUIRE(monitor.listen(getuid(), kJob));
    CHECK(spools.remove() == 0);
    CHECK(fs::exists(folder));
  }
  CHECK(spools.remove() == 1);
}

TEST_CASE("other things beside old copies stay") {
  Spools spools;
  Spools elsewhere;
  fs::path target = elsewhere.leave("00000000000000c1", kOld);
  fs::create_directory_symlink(target, spools.path / "00000000000000c1");
  fs::path named = spools.leave("notes", kOld), open = spools.leave("00000000000000c2", kOld);
  fs::path inside = spools.leave("00000000000000c3", kOld);
  fs::create_directory_symlink(named, inside / "link");
  fs::last_write_time(inside, fs::file_time_type::clock::now() - kOld);
  fs::permissions(open, fs::perms::owner_all | fs::perms::group_write);
  CHECK(spools.remove() == 0);
  for (const fs::path& one : {target, named, open, inside}) CHECK(fs::exists(one));
  fs::permissions(open, fs::perms::owner_all);
  fs::permissions(spools.path, fs::perms::owner_all | fs::perms::others_write);
  CHECK(spools.remove() == 0);
  CHECK(remove_old_spools((spools.path / "no-such-directory").string(), getuid()) == 0);
}

TEST_CASE("a start removes a bounded number") {
  Spools spools;
  for (int i = 0; i < 20; ++i) spools.leave("00000000000001" + std::to_string(10 + i), kOld);
  CHECK(spools.remove() == 16);
  CHECK(spools.remove() == 4);
}
