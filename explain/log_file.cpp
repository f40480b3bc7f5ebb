#include "explain/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "explain/scan.h"

namespace dshang::explain {
namespace {

constexpr unsigned kBlock = 1 << 20;
constexpr int kBlocksBetween = 32;  // calls of Progress

struct Closes {
  void operator()(gzFile file) const { gzclose(file); }
};
using File = std::unique_ptr<std::remove_pointer_t<gzFile>, Closes>;

[[noreturn]] void refuse(const std::string& path, const char* why) {
  throw std::runtime_error(path + ": " + why);
}

File open_log(const std::string& path, double* size) {
  int descriptor = path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) refuse(path, std::strerror(errno));
  struct stat about {};
  if (fstat(descriptor, &about) == 0 && S_ISDIR(about.st_mode)) {
    close(descriptor);
    refuse(path, "is a directory; name the logs in it");
  }
  *size = S_ISREG(about.st_mode) ? static_cast<double>(about.st_size) : 0;
  File file(gzdopen(descriptor, "rb"));
  if (!file) {
    close(descriptor);
    refuse(path, "no memory to read it");
  }
  gzbuffer(file.get(), kBlock / 4);
  return file;
}

// …/attempt_0/3/stderr.log, as torchrun --log-dir names them.
Speaker speaker_of(const std::string& path) {
  Speaker speaker;
  std::size_t name = path.rfind('/');
  if (name == std::string::npos) return speaker;
  std::string base = path.substr(name + 1);
  if (base != "stderr.log" && base != "stdout.log") return speaker;
  std::size_t before = path.rfind('/', name - 1), at = before == std::string::npos ? 0 : before + 1;
  std::size_t end = at;
  long rank = read_number(path, &end);
  if (rank < 0 || end != name) return speaker;
  speaker.rank = static_cast<int>(rank);
  speaker.local = true;
  return speaker;
}

// What zlib says, without its name for the file.
std::string trouble_of(gzFile file) {
  int error = Z_OK;
  std::string text = gzerror(file, &error);
  if (error == Z_OK) return "";
  if (error == Z_ERRNO) return std::strerror(errno);
  if (error == Z_BUF_ERROR) return "it is cut off";
  std::size_t name = text.find(">: ");
  return name == std::string::npos ? text : text.substr(name + 3);
}

// Of the beginning of a log; "" it is text.
const char* no_text(std::string_view text) {
  constexpr std::size_t kFewest = 32;
  constexpr std::string_view kUsual = "\a\b\t\n\v\f\r\x1b";
  std::size_t zero = 0, control = 0;
  for (char c : text) {
    zero += c == '\0';
    control += static_cast<unsigned char>(c) < ' ' && kUsual.find(c) == std::string_view::npos;
  }
  if (text.size() < kFewest || control * 20 < text.size()) return "";
  bool wide = zero * 5 > text.size() * 2 && zero * 5 < text.size() * 3;
  return wide ? "it looks like UTF-16: iconv -f UTF-16 -t UTF-8 makes a log of it"
              : "much of it is no text; is it a log?";
}

}  // namespace

void read_log(const std::string& path, Observed* observed, const Progress& progress) {
  double size = 0;
  File file = open_log(path, &size);
  observed->files.push_back({path == "-" ? "standard input" : path, 0, 0, {}, "", ""});
  Scan scan(Catalogue::shared(), observed, speaker_of(path));
  std::unique_ptr<char[]> block(new char[kBlock]);
  for (int blocks = 1;; ++blocks) {
    int got = gzread(file.get(), block.get(), kBlock);
    if (got > 0) scan.feed({block.get(), static_cast<std::size_t>(got)});
    if (got > 0 && blocks == 1)
      observed->files.back().no_text = no_text({block.get(), static_cast<std::size_t>(got)});
    if (got < static_cast<int>(kBlock)) {
      std::string trouble = trouble_of(file.get());
      if (got <= 0 && blocks == 1 && !trouble.empty()) refuse(path, trouble.c_str());
      if (!trouble.empty()) observed->files.back().trouble = trouble;
      if (got <= 0) break;
    }
    if (progress && blocks % kBlocksBetween == 0)
      progress(size > 0 ? static_cast<double>(gzoffset(file.get())) / size : -1);
  }
  scan.end();
}

}  // namespace dshang::explain
