#include "interpose/runtime/beside.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cstdint>

#include "interpose/runtime/libc_base.h"

namespace dshang::interpose {
namespace {

// Reads hexadecimal digits and moves on behind them.
std::uint64_t hexadecimal(const char** at) {
  static const char kDigits[] = "0123456789abcdef";
  std::uint64_t value = 0;
  for (const char* digit; **at && (digit = strchr(kDigits, **at)); ++*at) {
    value = value * 16 + static_cast<std::uint64_t>(digit - kDigits);
  }
  return value;
}

// The absolute path of the file mapped at `address`: the loader's own name for it may be relative to an older
// directory.
bool mapped_file(const void* address, char* path, std::size_t size) {
  FILE* maps = fopen("/proc/self/maps", "re");
  if (!maps) return false;
  static char line[kLongestPath + 128];
  std::uint64_t wanted = reinterpret_cast<std::uint64_t>(address);
  bool found = false;
  while (!found && fgets(line, sizeof line, maps)) {
    const char* at = line;
    std::uint64_t low = hexadecimal(&at);
    if (*at == '-') ++at;
    std::uint64_t high = hexadecimal(&at);
    const char* file = strchr(line, '/');
    if (wanted < low || wanted >= high || !file) continue;
    std::size_t length = strcspn(file, "\n");
    if (length >= size) break;
    memcpy(path, file, length);
    path[length] = 0;
    found = true;
  }
  fclose(maps);
  return found;
}

}  // namespace

bool beside_library(const char* file, char* path, std::size_t size) {
  const void* own = reinterpret_cast<const void*>(&beside_library);
  const char* library = libc::object_of(own);
  if (library && *library == '/' && strlen(library) < size) {
    strcpy(path, library);
  } else if (!mapped_file(own, path, size)) {
    return false;
  }
  char* slash = strrchr(path, '/');
  if (!slash || static_cast<std::size_t>(slash - path) + strlen(file) + 2 > size) return false;
  strcpy(slash + 1, file);
  return access(path, R_OK) == 0;
}

}  // namespace dshang::interpose
