#include "monitor/flight_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/flight/hash.h"
#include "monitor/descriptor.h"
#include "monitor/disk.h"

namespace dshang::monitor {
namespace {

constexpr std::size_t kBlock = 4096;
constexpr int kAttempts = 4;

// 0 for a block of zeros: such a block of a new file need not be written.
std::uint64_t hash_of(const unsigned char* block, std::size_t bytes) {
  std::uint64_t hash = 0, any = 0;
  std::size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, block + at, 8);
    any |= word;
    hash = flight::mix(hash + at + 1, word);
  }
  for (; at < bytes; ++at) {
    any |= block[at];
    hash = flight::mix(hash, block[at]);
  }
  return any ? hash | 1 : 0;
}

}  // namespace

void FlightFile::update(const Mapping& memory) {
  Descriptor file(open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!file) throw DiskError(path_, errno);
  struct stat info {};
  bool whole = fstat(file.get(), &info) == 0 && info.st_size == static_cast<off_t>(memory.size());
  if (hashes_.empty() || !whole) {  // new, or somebody cleaned the directory up
    if (ftruncate(file.get(), 0) != 0 || ftruncate(file.get(), static_cast<off_t>(memory.size())) != 0) {
      throw DiskError(path_, errno);
    }
    hashes_.assign((memory.size() + kBlock - 1) / kBlock, 0);
  }
  unsigned char block[kBlock], again[kBlock];
  for (std::size_t i = 0; i < hashes_.size(); ++i) {
    std::size_t at = i * kBlock, bytes = std::min(kBlock, memory.size() - at);
    std::memcpy(block, memory.data() + at, bytes);
    if (hash_of(block, bytes) == hashes_[i]) continue;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      std::memcpy(again, memory.data() + at, bytes);
      if (std::memcmp(block, again, bytes) == 0) break;
      std::memcpy(block, again, bytes);
    }
    ssize_t written = pwrite(file.get(), block, bytes, static_cast<off_t>(at));
    if (written != static_cast<ssize_t>(bytes)) throw DiskError(path_, written < 0 ? errno : ENOSPC);
    hashes_[i] = hash_of(block, bytes);
  }
}

}  // namespace dshang::monitor
