#include "core/job/input_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <streambuf>
#include <utility>

namespace dshang::job {
namespace {

constexpr std::size_t kPart = 65536;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw std::runtime_error(name + ": " + why);
}

std::string size_text(std::size_t bytes) {
  constexpr std::size_t kMebi = 1 << 20;
  return bytes < kMebi ? std::to_string(bytes) + " bytes" : std::to_string(bytes / kMebi) + " MiB";
}

// What a file is that cannot be read as one; "" it can, as far as its kind tells.
std::string wrong_kind(const struct stat& about, bool standard_input) {
  if (S_ISREG(about.st_mode) || S_ISFIFO(about.st_mode)) return "";
  if (S_ISDIR(about.st_mode)) return "is a directory; name a file in it";
  if (S_ISSOCK(about.st_mode)) return standard_input ? "" : "is not a regular file: it is a socket";
  bool null = S_ISCHR(about.st_mode) && about.st_rdev == makedev(1, 3);
  if (null || (standard_input && isatty(STDIN_FILENO))) return "";
  return "is not a regular file: it is a device";
}

// A pipe with a name, as mkfifo makes it; those of a shell's | and <( ) have none.
bool has_name(int pipe) {
  struct statfs about {};
  return fstatfs(pipe, &about) != 0 || about.f_type != PIPEFS_MAGIC;
}

// Of a pipe without data, opened with O_NONBLOCK.  tee(2) tells it without taking anything out.
bool nothing_writes(int pipe) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  bool nothing = tee(pipe, ends[1], 1, SPLICE_F_NONBLOCK) == 0;
  close(ends[0]);
  close(ends[1]);
  return nothing;
}

// Closes what was opened where the rest fails.
class Opened {
 public:
  explicit Opened(int descriptor) : descriptor_(descriptor) {}
  ~Opened() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

int open_input(const std::string& path, const std::string& name, double* size) {
  const bool standard_input = path == "-";
  if (path.empty()) refuse("an empty path", "it names no file");
  struct stat about {};
  // Before it is opened, too: opening a device may do something.
  if ((standard_input ? fstat(STDIN_FILENO, &about) : stat(path.c_str(), &about)) != 0)
    refuse(name, std::strerror(errno));
  std::string wrong = wrong_kind(about, standard_input);
  if (!wrong.empty()) refuse(name, wrong);
  Opened file(standard_input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                             : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0 || fstat(file.get(), &about) != 0) refuse(name, std::strerror(errno));
  wrong = wrong_kind(about, standard_input);
  if (!wrong.empty()) refuse(name, wrong);
  if (S_ISFIFO(about.st_mode) && !standard_input) {
    if (has_name(file.get()) && nothing_writes(file.get()))
      refuse(name, "is not a regular file: it is a pipe that nothing writes to");
    fcntl(file.get(), F_SETFL, fcntl(file.get(), F_GETFL) & ~O_NONBLOCK);
  }
  *size = S_ISREG(about.st_mode) ? static_cast<double>(about.st_size) : 0;
  return file.release();
}

}  // namespace

std::string input_name(const std::string& path) { return path == "-" ? "standard input" : path; }

InputFile::InputFile(const std::string& path)
    : name_(input_name(path)), descriptor_(open_input(path, name_, &size_)) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::size_t InputFile::read(char* to, std::size_t most) {
  for (;;) {
    ssize_t got = ::read(descriptor_, to, most);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EINTR) continue;
    // Standard input may have been left without blocking; a file of /proc says so of what it has not yet.
    struct stat about {};
    bool waits = errno == EAGAIN && fstat(descriptor_, &about) == 0 && !S_ISREG(about.st_mode);
    struct pollfd ready {
      descriptor_, POLLIN, 0
    };
    if (!waits) refuse(name_, std::strerror(errno));
    if (poll(&ready, 1, -1) < 0 && errno != EINTR) refuse(name_, std::strerror(errno));
  }
}

int InputFile::release() { return std::exchange(descriptor_, -1); }

std::string read_input(const std::string& path, std::size_t most) {
  InputFile file(path);
  std::string text;
  std::string part(kPart, '\0');
  while (std::size_t got = file.read(part.data(), part.size())) {
    text.append(part, 0, got);
    if (text.size() > most)
      refuse(input_name(path), "is longer than " + size_text(most) + ", and no more is read");
  }
  return text;
}

class InputStream::Buffer : public std::streambuf {
 public:
  explicit Buffer(const std::string& path) : file_(path), part_(kPart, '\0') {}

 protected:
  int_type underflow() override {
    std::size_t got = file_.read(part_.data(), part_.size());
    setg(part_.data(), part_.data(), part_.data() + got);
    return got ? traits_type::to_int_type(part_[0]) : traits_type::eof();
  }

 private:
  InputFile file_;
  std::string part_;
};

InputStream::InputStream(const std::string& path)
    : std::istream(nullptr), buffer_(std::make_unique<Buffer>(path)) {
  rdbuf(buffer_.get());
  exceptions(badbit);  // what read() throws is thrown on
}

InputStream::~InputStream() {
  exceptions(goodbit);
  rdbuf(nullptr);
}

bool is_there(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 || (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG);
}

}  // namespace dshang::job
