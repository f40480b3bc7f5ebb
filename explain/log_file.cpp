#include "explain/log_file.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "core/job/encoding.h"
#include "core/job/input_file.h"
#include "explain/scan.h"

namespace dshang::explain {
namespace {

constexpr unsigned kBlock = 1 << 20;
constexpr int kBlocksBetween = 32;  // calls of Progress

struct Closes {
  void operator()(gzFile file) const { gzclose(file); }
};
using File = std::unique_ptr<std::remove_pointer_t<gzFile>, Closes>;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw std::runtime_error(job::input_name(path) + ": " + why);
}

File open_log(const std::string& path, double* size) {
  job::InputFile input(path);
  *size = input.size();
  const int descriptor = input.release();
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

// How files begin that other programs pack, and the command that unpacks one to standard output.
struct Packing {
  std::string_view beginning;
  const char *name, *command;
};
constexpr Packing kPackings[] = {
    {"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"},      {{"\xfd\x37zXZ\0", 6}, "xz", "xz -dc"},
    {"\x04\x22\x4d\x18", "lz4", "lz4 -dc"},        {"LZIP\x01", "lzip", "lzip -dc"},
    {"7z\xbc\xaf\x27\x1c", "7-Zip", "7z x -so"},     {{"PK\x03\x04", 4}, "zip", "unzip -p"},
    {{"\x89LZO\0\r\n", 7}, "lzop", "lzop -dc"},         {"\x50\x2a\x4d\x18", "zstd", "zstd -dc"},  // pzstd
    {"\x1f\x9d", "compress", "gzip -dc"},
};

// bzip2 has but letters there, and then a fixed number: of the first block, or of an empty file's end.
bool is_bzip2(std::string_view text) {
  if (!text.starts_with("BZh") || text.size() < 10 || text[3] < '1' || text[3] > '9') return false;
  return text.substr(4, 6) == "1AY&SY" || text.substr(4, 6) == "\x17\x72\x45\x38\x50\x90";
}

// Quoted where a shell would take it apart.
std::string shell_word(const std::string& text) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
  if (text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string result = "'";
  for (char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

// "it is packed by zstd: zstd -dc log.zst | dshang explain"; "" it is not.
std::string packed_hint(const std::string& path, std::string_view text) {
  const char *name = nullptr, *command = nullptr;
  for (const Packing& one : kPackings) {
    if (text.starts_with(one.beginning)) name = one.name, command = one.command;
  }
  if (is_bzip2(text)) name = "bzip2", command = "bzip2 -dc";
  if (!name) return "";
  const std::string of = path == "-" ? "" : " " + shell_word(path);
  return std::string("it is packed by ") + name + ": " + command + of + " | dshang explain";
}

// Of the beginning of a log; "" it is text.
std::string no_text(std::string_view text) {
  constexpr std::size_t kFewest = 32;
  constexpr std::string_view kUsual = "\a\b\t\n\v\f\r\x1b";
  std::string wide = job::wide_hint(text, "a log");
  if (!wide.empty()) return wide;
  std::size_t control = 0;
  for (char c : text)
    control += static_cast<unsigned char>(c) < ' ' && kUsual.find(c) == std::string_view::npos;
  if (text.size() < kFewest || control * 20 < text.size()) return "";
  return "much of it is no text; is it a log?";
}

}  // namespace

void read_log(const std::string& path, Observed* observed, const Progress& progress) {
  double size = 0;
  File file = open_log(path, &size);
  observed->files.push_back({job::input_name(path), 0, 0, {}, "", ""});
  Scan scan(Catalogue::shared(), observed, speaker_of(path));
  std::unique_ptr<char[]> block(new char[kBlock]);
  for (int blocks = 1;; ++blocks) {
    int got = gzread(file.get(), block.get(), kBlock);
    std::string_view text(block.get(), got > 0 ? static_cast<std::size_t>(got) : 0);
    std::string packed = blocks == 1 ? packed_hint(path, text) : "";
    if (!packed.empty()) refuse(path, packed);
    if (got > 0) scan.feed(text);
    if (got > 0 && blocks == 1) observed->files.back().no_text = no_text(text);
    if (got < static_cast<int>(kBlock)) {
      std::string trouble = trouble_of(file.get());
      if (got <= 0 && blocks == 1 && !trouble.empty()) refuse(path, trouble);
      if (!trouble.empty()) observed->files.back().trouble = trouble;
      if (got <= 0) break;
    }
    if (progress && blocks % kBlocksBetween == 0)
      progress(size > 0 ? static_cast<double>(gzoffset(file.get())) / size : -1);
  }
  scan.end();
}

}  // namespace dshang::explain
