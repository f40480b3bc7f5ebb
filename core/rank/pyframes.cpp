#include "core/rank/pyframes.h"

#include <errno.h>

#include <atomic>

#include "core/flight/hash.h"
#include "core/rank/python_state.h"
#include "core/rank/python_walk.h"

namespace dshang::rank {
namespace {

// Frames that make up a site's key.  More than a site stores: of a longer stack the outermost ones of these
// are kept.
constexpr unsigned kKeyFrames = 96;

constexpr std::uint64_t rotate(std::uint64_t word, unsigned by) { return word << by | word >> (64 - by); }

template <typename T>
T value_at(std::uintptr_t address) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

// Tells code objects apart that had the same address one after the other.  From 3.12 on each has a version of
// its own. Before, a byte of its texts and line table has to differ: eight of each are looked at (an object's
// block is never shorter than that).
std::uint64_t salt(const PythonLayout& l, std::uintptr_t code, std::uintptr_t file, std::uintptr_t name) {
  if (l.code_version != PythonLayout::kNone) {
    std::uint32_t version = value_at<std::uint32_t>(code + l.code_version);
    if (version) return version;
  }
  std::uintptr_t lines = value_at<std::uintptr_t>(code + l.code_lines);
  std::int64_t length = value_at<std::int64_t>(file + l.text_length);
  std::uint64_t first_lines = value_at<std::uint64_t>(lines + l.bytes_data);
  std::uint64_t path_end =
      value_at<std::uint64_t>(file + l.text_header + std::uintptr_t(length > 8 ? length - 8 : 0));
  std::uint64_t name_start = value_at<std::uint64_t>(name + l.text_header);
  return lines ^ rotate(first_lines * 0xff51afd7ed558ccdull, 17) ^
         rotate(path_end * 0x9e3779b97f4a7c15ull, 41) ^ name_start * 0xc2b2ae3d27d4eb4full;
}

struct Walk {
  std::uint64_t key;
  unsigned count;  // in `frames`
  bool more;
  FrameAt frames[kKeyFrames];
};

void walk_own_frames(const Python& python, std::uintptr_t thread, Walk* walk) {
  const PythonLayout& l = python.layout;
  std::uint64_t key = flight::kFnvOffset;
  unsigned count = 0;
  bool more = false;
  walk_frames(OwnMemory{}, l, thread, [&](const FrameAt& at) {
    std::uintptr_t file = value_at<std::uintptr_t>(at.code + l.code_file);
    if (is_own_file(file)) return true;
    if (count == kKeyFrames) {
      more = true;
      return false;
    }
    std::uintptr_t name = value_at<std::uintptr_t>(at.code + l.code_name);
    std::uint64_t line = value_at<std::uint32_t>(at.code + l.code_first_line);
    // Independent products, then one step of the chain.
    std::uint64_t word = at.code * 0x9e3779b97f4a7c15ull +
                         rotate(std::uint64_t(at.position) * 0xc2b2ae3d27d4eb4full, 31) +
                         rotate(file * 0x165667b19e3779f9ull, 13) + name * 0xff51afd7ed558ccdull +
                         ((line << 40 | line >> 24) ^ salt(l, at.code, file, name)) * 0xc4ceb9fe1a85ec53ull;
    key = flight::mix(key, word);
    walk->frames[count++] = at;
    return true;
  });
  walk->key = key ? key : 1;
  walk->count = count;
  walk->more = more;
}

unsigned frames_beyond(const Python& python, std::uintptr_t thread) {
  unsigned total = 0;
  walk_frames(OwnMemory{}, python.layout, thread, [&](const FrameAt&) { return ++total < kLongestChain; });
  return total > kKeyFrames ? total - kKeyFrames : 0;
}

// Sites by the walk's key.  Code objects come and go (exec, recompilation) and bring new keys for the same
// lines, so the flight memory's table goes by what was read, and this one only remembers; what it forgets is
// read again. A slot is one word: the upper bits of the key, and the id in the lower ones, which choose the
// bucket.
class Known {
 public:
  std::uint32_t find(std::uint64_t key) const {
    const std::atomic<std::uint64_t>* bucket = slots_ + bucket_of(key);
    for (unsigned i = 0; i < kWays; ++i) {
      std::uint64_t slot = bucket[i].load(std::memory_order_relaxed);
      if ((slot & ~kIdMask) == (key & ~kIdMask) && slot & kIdMask)
        return static_cast<std::uint32_t>(slot & kIdMask);
    }
    return 0;
  }

  void remember(std::uint64_t key, std::uint32_t id) {
    std::atomic<std::uint64_t>* bucket = slots_ + bucket_of(key);
    unsigned way = next_.fetch_add(1, std::memory_order_relaxed) % kWays;
    for (unsigned i = 0; i < kWays; ++i) {
      if (bucket[i].load(std::memory_order_relaxed) == 0) way = i;
    }
    bucket[way].store((key & ~kIdMask) | id, std::memory_order_relaxed);
    used_.store(true, std::memory_order_relaxed);
  }

  void clear() {
    if (!used_.exchange(false)) return;
    for (std::atomic<std::uint64_t>& slot : slots_) slot.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned kWays = 4, kBuckets = 4096;
  static constexpr std::uint64_t kIdMask = (1u << 20) - 1;
  static_assert(flight::kSiteEntries < kIdMask && kBuckets <= kIdMask);
  static unsigned bucket_of(std::uint64_t key) { return static_cast<unsigned>(key % kBuckets) * kWays; }

  std::atomic<std::uint64_t> slots_[kBuckets * kWays];
  std::atomic<unsigned> next_;
  std::atomic<bool> used_;
};
Known known;

// Names every frame, here and now: later their code objects may be gone.
[[gnu::noinline]] std::uint32_t resolve(const flight::Writer& writer, const Python& python, const Walk& walk,
                                        std::uintptr_t thread) {
  flight::Frame names[kKeyFrames];
  std::uint64_t hashes[kKeyFrames];
  unsigned named = 0;
  for (unsigned i = 0; i < walk.count; ++i) {
    if (name_frame(OwnMemory{}, python, walk.frames[i], writer, &names[named], &hashes[named])) ++named;
  }
  if (!named) return 0;
  std::uint64_t key = flight::kFnvOffset;
  for (unsigned i = 0; i < named; ++i) key = flight::mix(key, hashes[i]);
  bool is_new;
  std::uint32_t id = writer.site(key ? key : 1, &is_new);
  if (!is_new) return id;
  flight::SiteEntry& entry = writer.site_entry(id);
  unsigned kept = named < flight::kSiteFrames ? named : flight::kSiteFrames;
  for (unsigned i = 0; i < named; ++i) {
    int place = place_in_table(i, named, flight::kSiteFrames);
    if (place >= 0) entry.frames[place] = names[i];
  }
  entry.truncated = named - kept + (walk.more ? frames_beyond(python, thread) : 0);
  writer.resolve_site(id, kept);
  return id;
}

}  // namespace

void forget_sites() { known.clear(); }

std::uint32_t call_site(const flight::Writer& writer) {
  int kept_errno = errno;
  std::uint32_t id = 0;
  const Python* python = readable_python(writer);
  std::uintptr_t thread = python ? reinterpret_cast<std::uintptr_t>(python->functions.this_thread()) : 0;
  if (thread && own_frames_are_safe() && walk_is_trusted(writer, *python, thread)) {
    Walk walk;
    walk_own_frames(*python, thread, &walk);
    if (walk.count) {
      id = known.find(walk.key);
      if (!id && (id = resolve(writer, *python, walk, thread))) known.remember(walk.key, id);
    }
  }
  errno = kept_errno;
  return id;
}

std::uint32_t made_site(const flight::Writer& writer, std::uint32_t file, std::uint32_t function,
                        std::int32_t line) {
  std::uint64_t key = flight::mix(flight::kFnvPrime, std::uint64_t{file} << 32 | function);
  key = flight::mix(key, static_cast<std::uint32_t>(line));
  bool is_new;
  std::uint32_t id = writer.site(key, &is_new);
  if (is_new) {
    writer.site_entry(id).frames[0] = {file, function, line};
    writer.resolve_site(id, 1);
  }
  return id;
}

}  // namespace dshang::rank
