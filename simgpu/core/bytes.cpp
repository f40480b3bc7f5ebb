#include "simgpu/core/bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "simgpu/core/ledger.h"

namespace simgpu {
namespace {

// Below this asking the kernel costs more than copying.
constexpr size_t kSparseFrom = 65536;
constexpr size_t kPagesAtOnce = 8192;

size_t page_size() {
  static const size_t kSize = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return kSize;
}

// One 64-bit word a page; bit 63: present, bit 62: swapped out (Documentation/admin-guide/mm/pagemap.rst of
// Linux). The flags are readable without privilege; -1 where /proc is missing.
int pagemap() {
  static const int kDescriptor = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  return kDescriptor;
}

bool page_is_real(uint64_t word) { return (word >> 62) != 0; }

// The words of `count` pages from page number `first`; false if they cannot be read.
bool read_pagemap(uintptr_t first, size_t count, std::vector<uint64_t>* words) {
  words->resize(count);
  const size_t bytes = count * sizeof(uint64_t);
  return pread(pagemap(), words->data(), bytes, static_cast<off_t>(first * sizeof(uint64_t))) ==
         static_cast<ssize_t>(bytes);
}

// Whether the range is anonymous memory of the simulator: only there does "never written" mean "zeros". A
// page of the program's own may be a file's that has not been read yet.
bool own_pages(const void* address, size_t bytes) {
  Block block;
  return find_block(address, &block) && block.kind != MemoryKind::kRegistered &&
         block.kind != MemoryKind::kSymbol && covered(address, bytes);
}

void zero(void* destination, size_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(destination);
  const uintptr_t end = begin + bytes;
  const uintptr_t first_page = (begin + page_size() - 1) & ~(page_size() - 1);
  const uintptr_t last_page = end & ~(page_size() - 1);
  if (last_page <= first_page + page_size() || !own_pages(destination, bytes)) {
    std::memset(destination, 0, bytes);
    return;
  }
  std::memset(destination, 0, first_page - begin);
  madvise(reinterpret_cast<void*>(first_page), last_page - first_page, MADV_DONTNEED);
  std::memset(reinterpret_cast<void*>(last_page), 0, end - last_page);
}

bool overlap(const void* a, const void* b, size_t bytes) {
  const uintptr_t x = reinterpret_cast<uintptr_t>(a);
  const uintptr_t y = reinterpret_cast<uintptr_t>(b);
  return x < y ? y - x < bytes : x - y < bytes;
}

// Copies one stretch of at most kPagesAtOnce pages.
void copy_stretch(char* destination, const char* source, size_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(source);
  const uintptr_t end = begin + bytes;
  const uintptr_t first = begin / page_size();
  const size_t pages = (end + page_size() - 1) / page_size() - first;
  std::vector<uint64_t> words;
  if (!read_pagemap(first, pages, &words)) {
    std::memmove(destination, source, bytes);
    return;
  }
  for (size_t page = 0; page < pages;) {
    const bool real = page_is_real(words[page]);
    size_t next = page;
    while (next < pages && page_is_real(words[next]) == real) ++next;
    const uintptr_t from = std::max(begin, (first + page) * page_size());
    const uintptr_t to = std::min(end, (first + next) * page_size());
    char* target = destination + (from - begin);
    if (real) {
      std::memmove(target, reinterpret_cast<const void*>(from), to - from);
    } else {
      zero(target, to - from);
    }
    page = next;
  }
}

}  // namespace

void copy_bytes(void* destination, const void* source, size_t bytes) {
  if (bytes == 0 || destination == source) return;
  if (bytes < kSparseFrom || overlap(destination, source, bytes) || !own_pages(source, bytes)) {
    std::memmove(destination, source, bytes);
    return;
  }
  const size_t stretch = kPagesAtOnce * page_size();
  for (size_t at = 0; at < bytes; at += stretch) {
    copy_stretch(static_cast<char*>(destination) + at, static_cast<const char*>(source) + at,
                 std::min(stretch, bytes - at));
  }
}

void fill_bytes(void* destination, int value, size_t bytes) {
  if (value == 0 && bytes >= kSparseFrom) {
    zero(destination, bytes);
  } else {
    std::memset(destination, value, bytes);
  }
}

bool touched(const void* address, size_t bytes) {
  if (bytes == 0) return false;
  if (!own_pages(address, bytes)) return true;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  const uintptr_t end = (begin + bytes + page_size() - 1) / page_size();
  std::vector<uint64_t> words;
  for (uintptr_t first = begin / page_size(); first < end; first += kPagesAtOnce) {
    if (!read_pagemap(first, std::min<size_t>(kPagesAtOnce, end - first), &words)) return true;
    if (std::any_of(words.begin(), words.end(), page_is_real)) return true;
  }
  return false;
}

}  // namespace simgpu
