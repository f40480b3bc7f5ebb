#include "monitor/disk.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "catch.h"
#include "monitor/attempt_files.h"
#include "monitor/flight_file.h"

using namespace dshang::monitor;
namespace fs = std::filesystem;

namespace {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/dshang-unit-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

mode_t mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(lstat(path.c_str(), &info) == 0);
  return info.st_mode & 0777;
}

struct Memory {
  explicit Memory(std::size_t bytes, int seals = F_SEAL_SHRINK) {
    file.reset(memfd_create("unit", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(ftruncate(file.get(), static_cast<off_t>(bytes)) == 0);
    fcntl(file.get(), F_ADD_SEALS, seals);
    data =
        static_cast<unsigned char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
    size = bytes;
  }
  ~Memory() { munmap(data, size); }
  Descriptor file;
  unsigned char* data;
  std::size_t size;
};

}  // namespace

TEST_CASE("files and directories are for their owner alone") {
  Folder folder;
  make_directories(folder / "a/b/c");
  CHECK(mode_of(folder / "a/b/c") == 0700);
  replace_file(folder / "a/file", "one");
  CHECK(mode_of(folder / "a/file") == 0600);
  append_to_file(folder / "a/log", "x\n");
  CHECK(mode_of(folder / "a/log") == 0600);
}

TEST_CASE("a file is replaced as a whole and leaves nothing beside it") {
  Folder folder;
  replace_file(folder / "file", "first");
  replace_file(folder / "file", "second");
  CHECK(read_file(folder / "file") == "second");
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("a failing write names path and reason") {
  try {
    replace_file("/proc/nothing/file", "x");
    FAIL("written to /proc");
  } catch (const DiskError& error) {
    CHECK(std::string(error.what()).find("cannot write /proc/nothing/file") == 0);
  }
}

TEST_CASE("a private directory must be ours, a directory, and closed to others") {
  Folder folder;
  make_private_directory(folder / "mine");
  CHECK(mode_of(folder / "mine") == 0700);
  chmod((folder / "mine").c_str(), 0777);
  CHECK_THROWS_AS(make_private_directory(folder / "mine"), DiskError);
  fs::create_symlink(folder.path(), folder / "link");
  CHECK_THROWS_AS(make_private_directory(folder / "link"), DiskError);
}

TEST_CASE("links point to the newest attempt and never back") {
  Folder folder;
  point_to_attempt(folder.path(), "report.txt", 2);
  CHECK(fs::read_symlink(folder / "report.txt") == "attempt-2/report.txt");
  point_to_attempt(folder.path(), "report.txt", 1);
  CHECK(fs::read_symlink(folder / "report.txt") == "attempt-2/report.txt");
  point_to_attempt(folder.path(), "report.txt", 10);
  CHECK(fs::read_symlink(folder / "report.txt") == "attempt-10/report.txt");
}

TEST_CASE("attempts are numbered after those that are there") {
  Folder folder;
  fs::create_directory(folder / "attempt-9");
  fs::create_directory(folder / "attempt-10");
  fs::create_directory(folder / "attempt-x");
  CHECK(newest_attempt(folder.path()) == 10);
  AttemptFiles files({folder.path(), folder / "spool/job", "host", true}, 0);
  CHECK(files.number() == 11);
}

TEST_CASE("a copy of flight memory follows what changes") {
  Folder folder;
  Memory memory(5 * 4096 + 100);
  std::string why;
  auto mapping = Mapping::map(memory.file, memory.size, &why);
  REQUIRE(mapping);
  FlightFile file(folder / "rank-0.flight");
  auto same = [&] {
    file.update(*mapping);
    std::string copy = read_file(file.path());
    return copy.size() == memory.size && std::memcmp(copy.data(), memory.data, memory.size) == 0;
  };
  CHECK(same());
  memory.data[0] = 1;
  memory.data[memory.size - 1] = 2;
  CHECK(same());
  memory.data[0] = 0;  // back to zeros
  CHECK(same());
  fs::remove(file.path());  // a cleaner came by
  CHECK(same());
}

TEST_CASE("only what is worth it is written again") {
  Folder folder;
  Memory memory(3 * 4096);
  std::string why;
  auto mapping = Mapping::map(memory.file, memory.size, &why);
  FlightFile file(folder / "f");
  memory.data[0] = 1;
  file.update(*mapping);
  Descriptor other(open(file.path().c_str(), O_WRONLY));
  REQUIRE(pwrite(other.get(), "z", 1, 4096) == 1);  // a mark in a block that does not change
  memory.data[0] = 2;
  file.update(*mapping);
  std::string copy = read_file(file.path());
  CHECK(copy[0] == 2);
  CHECK(copy[4096] == 'z');
}

TEST_CASE("memory that could shrink under the reader is refused") {
  std::string why;
  Memory loose(4096, 0);
  // An unlinked memory object is its process's own, but this one is a file that others can reach.
  Folder folder;
  Descriptor file(open((folder / "file").c_str(), O_RDWR | O_CREAT, 0600));
  REQUIRE(ftruncate(file.get(), 4096) == 0);
  CHECK_FALSE(Mapping::map(file, 4096, &why));
  CHECK(why.find("sealed") != std::string::npos);
  Memory small(4096);
  CHECK_FALSE(Mapping::map(small.file, 8192, &why));
  CHECK_FALSE(Mapping::map(Descriptor(), 4096, &why));
}

TEST_CASE("the node-local copy is kept when the files could not be written") {
  Folder folder;
  Memory memory(4096);
  memory.data[0] = 1;
  std::string why;
  std::vector<FlightCopy> copies{{"rank-0.flight", Mapping::map(memory.file, memory.size, &why)}};
  AttemptFiles files({folder / "out", folder / "user/job", "host", true}, 0);
  files.open_spool();
  files.spool_flight(copies);
  CHECK(read_file(folder / "out/attempt-1/flight/spool.host") == folder / "user/job/attempt-1\n");
  fs::remove_all(folder / "out/attempt-1/flight");
  CHECK_THROWS_AS(files.copy_flight(copies), DiskError);
  files.remove_spool();
  CHECK(fs::exists(folder / "user/job/attempt-1/rank-0.flight"));
  fs::create_directory(folder / "out/attempt-1/flight");
  files.copy_flight(copies);
  files.remove_spool();
  CHECK_FALSE(fs::exists(folder / "user"));
}
