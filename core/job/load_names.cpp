#include "core/job/load_names.h"

#include <utility>

#include "core/job/printable.h"

namespace dshang::job {
namespace {

using flight::SlotState;

// Marks a raw id that is in one of the waiting lists.
constexpr std::uint32_t kWaiting = UINT32_MAX;

}  // namespace

RawIds::RawIds(const flight::Reader& reader, Names& names, KnownIds& known)
    : reader_(reader), names_(names), known_(known) {
  known_.strings.resize(reader.string_ids());
  known_.sites.resize(reader.site_ids());
}

NameId RawIds::name(std::uint32_t raw, bool* missing) {
  if (raw == 0 || raw > known_.strings.size()) return 0;
  NameId& known = known_.strings[raw - 1];
  if (known && known != kWaiting) return known;
  bool later = false;
  NameId found = look_up_name(raw, &later);
  if (later) {
    if (known != kWaiting) known_.waiting_strings.push_back(raw);
    known = kWaiting;
    *missing = true;
    return 0;
  }
  return known = found;
}

NameId RawIds::look_up_name(std::uint32_t raw, bool* missing) {
  char text[flight::kLongestString];
  std::size_t length = 0;
  SlotState state = reader_.string(raw, text, &length);
  if (state == SlotState::kComplete) return names_.name(printable({text, length}));
  // With a full arena the bytes never come.
  *missing = state == SlotState::kUnfinished &&
             reader_.header().dropped_strings.load(std::memory_order_relaxed) == 0;
  return 0;
}

SiteId RawIds::site(std::uint32_t raw, bool* missing) {
  if (raw == 0 || raw > known_.sites.size()) return 0;
  SiteId& known = known_.sites[raw - 1];
  if (known == kWaiting) {
    *missing = true;
    return 0;
  }
  if (known) return known;
  bool later = false;
  SiteId found = look_up_site(raw, &later);
  if (later) {
    known_.waiting_sites.push_back(raw);
    known = kWaiting;
    *missing = true;
    return 0;
  }
  return known = found;
}

SiteId RawIds::look_up_site(std::uint32_t raw, bool* missing) {
  flight::Copy<flight::SiteEntry> entry;
  std::uint32_t frames = 0;
  SlotState state = reader_.site(raw, &entry, &frames);
  if (state == SlotState::kUnfinished) *missing = true;
  if (state != SlotState::kComplete) return 0;
  return stack(entry->frames, frames, entry->truncated != 0, missing);
}

SiteId RawIds::stack(const flight::Frame* frames, std::uint32_t count, bool truncated, bool* missing) {
  std::vector<FrameName> named(count);
  bool later = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    named[i] = {name(frames[i].file, &later), name(frames[i].function, &later), frames[i].line};
  }
  if (later) {
    *missing = true;
    return 0;
  }
  return names_.site(std::move(named), truncated);
}

bool RawIds::refresh() {
  bool news = false;
  std::erase_if(known_.waiting_strings, [&](std::uint32_t raw) {
    bool missing = false;
    NameId found = look_up_name(raw, &missing);
    if (missing) return false;
    known_.strings[raw - 1] = found;
    return news = true;
  });
  std::erase_if(known_.waiting_sites, [&](std::uint32_t raw) {
    bool missing = false;
    SiteId found = look_up_site(raw, &missing);
    if (missing) return false;
    known_.sites[raw - 1] = found;
    return news = true;
  });
  return news;
}

}  // namespace dshang::job
