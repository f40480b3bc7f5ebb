// A rank's flight memory, mapped read-only.  It stays readable after its process was killed.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "monitor/descriptor.h"

namespace dshang::monitor {

class Mapping {
 public:
  // Null with `why` set when the descriptor is no memory object that can be mapped without risk: it must be
  // sealed against shrinking, or an unlinked file (which only its own process can shrink).
  static std::shared_ptr<const Mapping> map(const Descriptor& file, std::size_t bytes, std::string* why);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const unsigned char* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  Mapping(const unsigned char* data, std::size_t size) : data_(data), size_(size) {}
  const unsigned char* data_;
  std::size_t size_;
};

}  // namespace dshang::monitor
