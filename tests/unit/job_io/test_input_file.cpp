// Files that a user names, and how their bytes are read (what the commands say of them: tests/doctor).
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.h"
#include "core/job/encoding.h"
#include "core/job/input_file.h"

using namespace dshang::job;

namespace {

class Folder {
 public:
  Folder() : path_("/tmp/dshang-input-XXXXXX") { REQUIRE(mkdtemp(path_.data())); }
  ~Folder() {
    for (const std::string& name : made_) unlink(name.c_str());
    rmdir(path_.c_str());
  }
  std::string name(const std::string& name) {
    made_.push_back(path_ + "/" + name);
    return made_.back();
  }
  std::string file(const std::string& content) {
    std::string path = name("file");
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

 private:
  std::string path_;
  std::vector<std::string> made_;
};

}  // namespace

TEST_CASE("a regular file has a size, a pipe has none") {
  Folder folder;
  CHECK(InputFile(folder.file("twelve bytes")).size() == 12);
  std::string pipe = folder.name("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_AS(InputFile(pipe), std::runtime_error);
  int both = open(pipe.c_str(), O_RDWR | O_CLOEXEC);  // a writer that is silent
  CHECK(InputFile(pipe).size() == 0);
  REQUIRE(write(both, "said", 4) == 4);
  InputFile read(pipe);
  char text[8];
  CHECK(read.read(text, sizeof text) == 4);  // looking for a writer took nothing out
  close(both);
  CHECK(read.read(text, sizeof text) == 0);
}

TEST_CASE("as much as may be is read, and no more") {
  Folder folder;
  std::string path = folder.file(std::string(200000, 'x'));
  CHECK(read_input(path, 200000).size() == 200000);
  CHECK_THROWS_AS(read_input(path, 199999), std::runtime_error);
}

TEST_CASE("a stream gives the lines of a file") {
  Folder folder;
  std::string content;
  for (int i = 0; i < 30000; ++i) content += std::to_string(i) + "\n";
  InputStream lines(folder.file(content));
  int number = 0;
  for (std::string line; std::getline(lines, line); ++number) REQUIRE(line == std::to_string(number));
  CHECK(number == 30000);
  CHECK_THROWS_AS(InputStream("/dev/zero"), std::runtime_error);
}

TEST_CASE("what is there is told from what is not") {
  Folder folder;
  std::string path = folder.file("");
  CHECK(is_there(path));
  CHECK(is_there("/"));
  CHECK_FALSE(is_there(path + "x"));
  CHECK_FALSE(is_there(path + "/below"));
  CHECK_FALSE(is_there(std::string(5000, 'x')));  // a config in base64 is no path
  CHECK_FALSE(is_there(""));
}

TEST_CASE("wide letters are known by their mark or their zeros") {
  using namespace std::string_literals;
  CHECK(wide_encoding("\xff\xfe{\0}\0"s) == "UTF-16");
  CHECK(wide_encoding("\xfe\xff\0{\0}"s) == "UTF-16");
  CHECK(wide_encoding("\xff\xfe\0\0{\0\0\0"s) == "UTF-32");
  CHECK(wide_encoding("{\0\"\0a\0\"\0:\0"s) == "UTF-16LE");
  CHECK(wide_encoding("\0{\0\"\0a\0\"\0:"s) == "UTF-16BE");
  CHECK(wide_encoding("{\0\0\0}\0\0\0"s) == "UTF-32LE");
  CHECK(wide_encoding("\0\0\0{\0\0\0}"s) == "UTF-32BE");
  for (const std::string& text :
       {""s, "{}"s, "\xef\xbb\xbf{}"s, "a\0b"s, std::string(100, '\0'), "text that is long enough"s,
        "\xff\xfe and no zero"s, "NAME=1\0OTHER=2\0"s})
    CHECK(wide_encoding(text).empty());
}

TEST_CASE("the first byte that is no UTF-8 is found") {
  CHECK(first_broken("") == std::string::npos);
  CHECK(first_broken("gr\xc3\xbc\xc3\x9f \xe8\xaa\x9e \xf0\x9f\x98\x80") == std::string::npos);
  CHECK(first_broken("caf\xe9") == 3);
  CHECK(first_broken("ab\xc3") == 2);            // cut off
  CHECK(first_broken("a\xc0\xaf") == 1);         // longer than it need be
  CHECK(first_broken("a\xed\xa0\x80") == 1);     // half of a pair
  CHECK(first_broken("\xc3\xa9\xf5\x80\x80\x80") == 2);
}
