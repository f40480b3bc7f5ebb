// A flight memory in ordinary memory, for tests.
#pragma once

#include <cstring>
#include <memory>

#include "core/flight/reader.h"
#include "core/flight/writer.h"

namespace dshang::flight::test {

inline constexpr OpInfo kOps[] = {
    {"all_gather", kOpCollective, 0},
    {"all_reduce", kOpCollective | kOpReduces, 0},
    {"broadcast", kOpCollective | kOpRooted, 0},
    {"send", kOpSend, 0},
    {"recv", kOpRecv, 0},
};

class Image {
 public:
  Image() : words_(new std::uint64_t[Writer::total_bytes() / 8]()) {
    Identity identity;
    identity.rank = 2;
    identity.world_size = 4;
    identity.start_ns = 1000;
    identity.start_real_ns = 5000;
    writer_ = Writer::format(words_.get(), identity, kOps, sizeof kOps / sizeof kOps[0]);
  }
  const Writer& writer() const { return writer_; }
  Header& header() { return writer_.header(); }
  unsigned char* bytes() { return reinterpret_cast<unsigned char*>(words_.get()); }
  std::size_t size() const { return Writer::total_bytes(); }
  Reader reader() const { return Reader(words_.get(), size()); }

  template <typename T>
  T* section(Section which) {
    return reinterpret_cast<T*>(bytes() + header().sections[static_cast<unsigned>(which)].offset);
  }

  // A complete call whose fields follow from `value`.
  std::uint64_t call(std::uint64_t value) {
    auto open = writer_.open_call();
    fill(*open, value);
    open.complete();
    return open.n();
  }
  static void fill(CallRecord& record, std::uint64_t value) {
    record.number = value;
    record.count = ~value;
    record.stream = value * 3;
    record.enter_ns = value * 5;
    record.visits_before = value * 7;
    record.params = value * 11;
    record.root_or_peer = static_cast<std::int32_t>(value);
    record.result = static_cast<std::uint32_t>(value);
  }
  static bool fits_together(const CallRecord& record) {
    std::uint64_t value = record.number;
    return record.count == ~value && record.stream == value * 3 && record.enter_ns == value * 5 &&
           record.visits_before == value * 7 && record.params == value * 11 &&
           record.root_or_peer == static_cast<std::int32_t>(value) &&
           record.result == static_cast<std::uint32_t>(value);
  }

 private:
  std::unique_ptr<std::uint64_t[]> words_;
  Writer writer_;
};

}  // namespace dshang::flight::test
