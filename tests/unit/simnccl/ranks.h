// Runs one process a rank. The test program itself never calls CUDA, so that its children may.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "tests/unit/simnccl/api.h"

// What the ranks of one job share.
struct Board {
  std::atomic<int> id_ready[8];
  simgpu::nccl::UniqueId id[8];
  std::atomic<int> flags[16];  // for the tests
};

// A device buffer.
class Buffer {
 public:
  explicit Buffer(size_t bytes);
  void* get() const { return address_; }
  operator void*() const { return address_; }

  void put(const void* from, size_t bytes);
  void take(void* to, size_t bytes) const;

 private:
  void* address_ = nullptr;
};

template <class T>
Buffer device_copy(const std::vector<T>& values) {
  Buffer buffer(values.size() * sizeof(T));
  buffer.put(values.data(), values.size() * sizeof(T));
  return buffer;
}

template <class T>
std::vector<T> host_copy(const Buffer& buffer, size_t count) {
  std::vector<T> values(count);
  buffer.take(values.data(), count * sizeof(T));
  return values;
}

class Rank {
 public:
  Rank(int rank, int size, Board& board) : rank(rank), size(size), board(board) {}

  // A communicator of all ranks; `number` tells several apart.
  Comm comm(int number = 0) const;
  simgpu::nccl::UniqueId id(int number) const;
  static Stream stream();

  // Ends the rank with a message unless it holds.
  void expect(bool holds, const char* what) const;
  void success(int result, const char* what) const;

  // Waits for the stream; false if it still has work after `milliseconds`.
  static bool done(Stream stream, int milliseconds = 40000);
  static void pause(int milliseconds);

  void set(int flag) const { board.flags[flag].fetch_add(1); }
  void await(int flag, int value = 1) const;

  const int rank;
  const int size;
  Board& board;
};

#define EXPECT(condition) r.expect((condition), #condition " (line " EXPECT_LINE(__LINE__) ")")
#define SUCCESS(call) r.success((call), #call " (line " EXPECT_LINE(__LINE__) ")")
#define EXPECT_LINE(line) EXPECT_TEXT(line)
#define EXPECT_TEXT(line) #line

inline constexpr int kStuck = -1;

// Exit status of every rank: 0, 1 (an expectation failed), minus the signal that ended it, or kStuck (killed
// after 60 s). `environment` is NAME=value.
std::vector<int> run_ranks(int size, const std::function<void(Rank&)>& body,
                           const std::vector<std::string>& environment = {});

// All of them ended well.
bool all_well(const std::vector<int>& statuses);
