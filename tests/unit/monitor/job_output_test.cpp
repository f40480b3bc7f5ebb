#include "monitor/job_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "catch.h"

using namespace dshang::monitor;

namespace {

struct Pipe {
  Pipe() {
    int fds[2];
    REQUIRE(pipe2(fds, O_CLOEXEC) == 0);
    reader.reset(fds[0]);
    writer.reset(fds[1]);
  }
  std::string read_now() {
    fcntl(reader.get(), F_SETFL, O_NONBLOCK);
    char text[8192];
    ssize_t n = read(reader.get(), text, sizeof text);
    return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : "";
  }
  Descriptor reader, writer;
};

}  // namespace

TEST_CASE("words go to the lowest rank that is there, and to nobody twice") {
  Pipe zero, one;
  JobOutput output;
  output.add(1, 1, std::move(one.writer));
  output.add(2, 0, std::move(zero.writer));
  CHECK(output.say("hello"));
  CHECK(zero.read_now() == "dshang: hello\n");
  CHECK(one.read_now().empty());
  output.remove(2);
  CHECK(output.say("again"));
  CHECK(one.read_now() == "dshang: again\n");
}

TEST_CASE("a copy that is removed is closed") {
  Pipe pipe;
  JobOutput output;
  output.add(1, 0, std::move(pipe.writer));
  output.close_all();
  char letter;
  CHECK(read(pipe.reader.get(), &letter, 1) == 0);  // end of file
  CHECK_FALSE(output.say("x"));
}

TEST_CASE("a block is one write of at most 4096 bytes") {
  Pipe pipe;
  JobOutput output;
  output.add(1, 0, std::move(pipe.writer));
  CHECK(output.write(std::string(10000, 'x')));
  CHECK(pipe.read_now().size() == kLongestBlock);
}

TEST_CASE("a reader that does not read does not hold the monitor") {
  Pipe pipe;
  int writer = pipe.writer.get();
  fcntl(writer, F_SETFL, O_NONBLOCK);
  std::string much(65536, 'x');
  while (write(writer, much.data(), much.size()) > 0) {
  }
  fcntl(writer, F_SETFL, 0);
  JobOutput output;
  output.add(1, 0, std::move(pipe.writer));
  auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(output.say("x"));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(2));
  CHECK((fcntl(writer, F_GETFL) & O_NONBLOCK) == 0);  // the flag is shared with the job
}

TEST_CASE("a descriptor that cannot be written is dropped") {
  Pipe pipe;
  JobOutput output;
  output.add(1, 0, std::move(pipe.reader));
  CHECK_FALSE(output.any());
}
