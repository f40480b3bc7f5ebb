// Writes plain data as a pickle of protocol 2, the one that torch writes; what recorder_pickle.h reads.
//
// Values are written in order; a container is opened, filled and closed.  In a dictionary keys and values
// stand in turns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace dshang::job {

class PickleWriter {
 public:
  PickleWriter();

  void none() { out_ += 'N'; }
  void boolean(bool is) { out_ += is ? '\x88' : '\x89'; }
  void integer(std::int64_t number);
  void text(std::string_view text);  // valid UTF-8; written once, then referred to

  void open_list();
  void close_list() { out_ += 'e'; }
  void open_dictionary();
  void close_dictionary() { out_ += 'u'; }
  // The two values before it.
  void pair() { out_ += '\x86'; }

  // Keeps the container just closed, and writes it again.
  std::uint32_t keep();
  void again(std::uint32_t kept);

  // The whole pickle of the one value written.
  std::string finish();

 private:
  void little_endian(std::uint64_t number, unsigned bytes);

  std::string out_;
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::uint32_t kept_ = 0;
};

}  // namespace dshang::job
