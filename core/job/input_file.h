// Files that a user names on the command line: regular ones, and pipes that something writes to.
//
// Nothing here waits for a writer, and nothing is opened whose opening has an effect or whose reading has no
// end: a device, but for /dev/null, is refused.
//
// Failure: throws std::runtime_error with one line, "PATH: why".
#pragma once

#include <istream>
#include <memory>
#include <string>

namespace dshang::job {

// A path as messages name it: "standard input" for "-".
std::string input_name(const std::string& path);

class InputFile {
 public:
  // "-" is standard input.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  double size() const { return size_; }  // bytes; 0 unknown
  // How many bytes were read; 0 at the end.
  std::size_t read(char* to, std::size_t most);
  // The descriptor, which is the caller's from now on.
  int release();

 private:
  std::string name_;
  double size_ = 0;  // set by opening it, which comes behind
  int descriptor_ = -1;
};

// The whole of it; one that is longer than `most` bytes is refused.
std::string read_input(const std::string& path, std::size_t most);

// The same to be read piece by piece.
class InputStream : public std::istream {
 public:
  explicit InputStream(const std::string& path);
  ~InputStream() override;

 private:
  class Buffer;
  std::unique_ptr<Buffer> buffer_;
};

// Something is there, be it that this user may not look at it.
bool is_there(const std::string& path);

}  // namespace dshang::job
