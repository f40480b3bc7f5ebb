#include "core/rank/early_names.h"

#include <string.h>

namespace dshang::rank {
namespace {

struct Name {
  std::atomic<std::uint32_t> length_plus_one;  // 0 = bytes not there yet
  char text[kEarlyLength + 1];
};

struct Note {
  std::atomic<std::uint64_t> names;  // key << 32 | value, 0 = empty
};

Name names[kEarlyNames];
std::atomic<unsigned> name_count{0};
Note notes[kEarlyNotes];
std::atomic<unsigned> note_count{0};

}  // namespace

std::uint32_t early_name(const char* name) {
  if (!name || !*name) return 0;
  std::uint32_t length = static_cast<std::uint32_t>(strnlen(name, kEarlyLength));
  unsigned known = name_count.load(std::memory_order_acquire);
  for (unsigned i = 0; i < known && i < kEarlyNames; ++i) {
    if (names[i].length_plus_one.load(std::memory_order_acquire) == length + 1 &&
        memcmp(names[i].text, name, length) == 0) {
      return kEarly | (i + 1);
    }
  }
  unsigned at = name_count.load(std::memory_order_relaxed);
  do {
    if (at >= kEarlyNames) return 0;
  } while (!name_count.compare_exchange_weak(at, at + 1, std::memory_order_acq_rel));
  memcpy(names[at].text, name, length);
  names[at].length_plus_one.store(length + 1, std::memory_order_release);
  return kEarly | (at + 1);
}

std::uint32_t late_name(const flight::Writer& writer, std::uint32_t id) {
  if (!(id & kEarly)) return id;
  const Name& name = names[(id & ~kEarly) - 1];
  std::uint32_t length = name.length_plus_one.load(std::memory_order_acquire);
  return length ? writer.string(name.text, length - 1) : 0;
}

void early_note(std::uint32_t key, std::uint32_t value) {
  if (!key) return;
  unsigned at = note_count.load(std::memory_order_relaxed);
  do {
    if (at >= kEarlyNotes) return;
  } while (!note_count.compare_exchange_weak(at, at + 1, std::memory_order_acq_rel));
  notes[at].names.store(std::uint64_t{key} << 32 | value, std::memory_order_release);
}

void write_early_notes(const flight::Writer& writer) {
  for (Note& note : notes) {
    std::uint64_t pair = note.names.load(std::memory_order_acquire);
    if (!pair) continue;
    writer.fact(late_name(writer, static_cast<std::uint32_t>(pair >> 32)),
                late_name(writer, static_cast<std::uint32_t>(pair)));
  }
}

}  // namespace dshang::rank
