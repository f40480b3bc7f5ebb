#include "monitor/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

namespace dshang::monitor {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 30;

}  // namespace

std::shared_ptr<const Mapping> Mapping::map(const Descriptor& file, std::size_t bytes, std::string* why) {
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    *why = "no flight memory was handed over";
    return nullptr;
  }
  if (bytes == 0 || bytes > kLargest || info.st_size < static_cast<off_t>(bytes)) {
    *why = "the flight memory has " + std::to_string(info.st_size) + " bytes, announced were " +
           std::to_string(bytes);
    return nullptr;
  }
  int seals = fcntl(file.get(), F_GET_SEALS);
  bool sealed = seals >= 0 && (seals & F_SEAL_SHRINK);
  if (!sealed && info.st_nlink != 0) {
    *why = "the flight memory is not sealed against shrinking";
    return nullptr;
  }
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) {
    *why = std::string("the flight memory cannot be mapped: ") + std::strerror(errno);
    return nullptr;
  }
  return std::shared_ptr<const Mapping>(new Mapping(static_cast<const unsigned char*>(data), bytes));
}

Mapping::~Mapping() { munmap(const_cast<unsigned char*>(data_), size_); }

}  // namespace dshang::monitor
