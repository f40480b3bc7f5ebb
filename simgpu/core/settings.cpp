#include "simgpu/core/settings.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "simgpu/core/abi.h"
#include "simgpu/core/log.h"

namespace simgpu {
namespace {

const char* value_of(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

// The factor of a size's suffix ("GiB" and "GB" count as "G"); `unit` for none, 0 for what is no suffix.
double suffix_factor(const char* suffix, double unit) {
  if (*suffix == '\0') return unit;
  static const char kLetters[] = "KMGT";
  const char letter = static_cast<char>(*suffix & ~0x20);
  const char* found = std::strchr(kLetters, letter);
  const std::string rest = suffix + 1;
  if (found == nullptr || !(rest.empty() || rest == "B" || rest == "iB")) return 0;
  return std::ldexp(1.0, 10 * static_cast<int>(found - kLetters + 1));
}

// Ordinals until the first one that is not a device, as CUDA reads the list; names of devices are not known
// here.
std::vector<int> visible_devices(int devices) {
  std::vector<int> visible;
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) {
    for (int i = 0; i < devices; ++i) visible.push_back(i);
    return visible;
  }
  for (const char* at = list; *at != '\0';) {
    char* end = nullptr;
    const long ordinal = std::strtol(at, &end, 10);
    if (end == at || ordinal < 0 || ordinal >= devices) break;
    visible.push_back(static_cast<int>(ordinal));
    if (*end != ',') break;
    at = end + 1;
  }
  return visible;
}

// The bytes of a size; 0: it is none.
size_t bytes_of(const char* text, double unit) {
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  const double bytes = end == text ? 0 : number * suffix_factor(end, unit);
  constexpr double kMost = 281474976710656.0;  // 2^48, an address space
  return bytes >= 1 && bytes <= kMost ? static_cast<size_t>(bytes) : 0;
}

// One entry of SIMGPU_VRAM_BYTES. False: it is none.
bool set_memory(const std::string& entry, std::vector<size_t>* memory) {
  const size_t colon = entry.find(':');
  const size_t bytes = bytes_of(entry.c_str() + (colon == std::string::npos ? 0 : colon + 1), 1);
  if (bytes == 0) return false;
  if (colon == std::string::npos) {
    memory->assign(memory->size(), bytes);
    return true;
  }
  char* end = nullptr;
  const long device = std::strtol(entry.c_str(), &end, 10);
  if (colon == 0 || *end != ':' || device < 0 || device >= kMaxDevices) return false;
  if (device < static_cast<long>(memory->size())) (*memory)[static_cast<size_t>(device)] = bytes;
  return true;
}

std::vector<size_t> memory_of_devices(int devices, size_t by_default) {
  const char* value = value_of("SIMGPU_VRAM_BYTES");
  const std::vector<size_t> usual(static_cast<size_t>(devices), by_default);
  if (value == nullptr) return usual;
  std::vector<size_t> memory = usual;
  const std::string list = value;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (!set_memory(list.substr(at, end - at), &memory)) {
      log(0,
          "SIMGPU_VRAM_BYTES=%s is not [size][,device:size...] (a size is a number, with K, M, G or T where "
          "meant); %zu bytes are used",
          value, by_default);
      return usual;
    }
    at = end + 1;
  }
  return memory;
}

Settings read_settings() {
  constexpr size_t kGiB = size_t{1} << 30;
  Settings result;
  result.devices = static_cast<int>(integer_setting("SIMGPU_DEVICES", 8, 0, kMaxDevices));
  result.visible = visible_devices(result.devices);
  result.memory = memory_of_devices(result.devices, size_setting("SIMGPU_VRAM_GB", 80 * kGiB, kGiB));
  result.alloc_us = static_cast<int>(integer_setting("SIMGPU_ALLOC_US", 0, 0, 60'000'000));
  result.queue_depth = static_cast<size_t>(integer_setting("SIMGPU_QUEUE_DEPTH", 1024, 1, 1'000'000));
  result.log_level = static_cast<int>(integer_setting("SIMGPU_LOG", 0, 0, 2));
  result.quiet = flag_setting("SIMGPU_QUIET", false);
  result.fault_launch = integer_setting("SIMGPU_FAULT_LAUNCH", 0, 0, std::numeric_limits<int64_t>::max());
  choice_setting("SIMGPU_NUM", {"int", "off", "small"});  // for the Python side; a bad value is named here
  return result;
}

}  // namespace

int64_t integer_setting(const char* name, int64_t by_default, int64_t lowest, int64_t highest) {
  const char* value = value_of(name);
  if (value == nullptr) return by_default;
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(value, &end, 10);
  if (errno != 0 || end == value || *end != '\0' || number < lowest || number > highest) {
    log(0, "%s=%s is not an integer from %lld to %lld; %lld is used", name, value,
        static_cast<long long>(lowest), static_cast<long long>(highest), static_cast<long long>(by_default));
    return by_default;
  }
  return number;
}

bool flag_setting(const char* name, bool by_default) {
  return integer_setting(name, by_default ? 1 : 0, 0, 1) != 0;
}

size_t size_setting(const char* name, size_t by_default, size_t unit) {
  const char* value = value_of(name);
  if (value == nullptr) return by_default;
  const size_t bytes = bytes_of(value, static_cast<double>(unit));
  if (bytes == 0) {
    log(0, "%s=%s is not a size (a number, with K, M, G or T where meant); %zu bytes are used", name, value,
        by_default);
    return by_default;
  }
  return bytes;
}

std::string choice_setting(const char* name, const std::vector<std::string>& choices) {
  const char* value = value_of(name);
  if (value == nullptr) return choices.front();
  std::string list;
  for (const std::string& choice : choices) {
    if (choice == value) return choice;
    list += (list.empty() ? "" : ", ") + choice;
  }
  log(0, "%s=%s is none of %s; %s is used", name, value, list.c_str(), choices.front().c_str());
  return choices.front();
}

const Settings& settings() {
  static const Settings* const kSettings = new Settings(read_settings());  // outlives every destructor
  return *kSettings;
}

size_t device_bytes(int physical) {
  const std::vector<size_t>& memory = settings().memory;
  return physical >= 0 && physical < static_cast<int>(memory.size()) ? memory[static_cast<size_t>(physical)]
                                                                     : 0;
}

}  // namespace simgpu
