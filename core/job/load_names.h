// String and site ids of one flight memory, looked up lazily in the names of the whole job.
#pragma once

#include <cstdint>
#include <vector>

#include "core/flight/reader.h"
#include "core/job/names.h"

namespace dshang::job {

// What is known of the raw ids so far; part of LoadState.
struct KnownIds {
  std::vector<NameId> strings;  // by raw id - 1; 0 = not looked up yet
  std::vector<SiteId> sites;
  std::vector<std::uint32_t> waiting_strings, waiting_sites;  // raw ids that are not readable yet
};

class RawIds {
 public:
  RawIds(const flight::Reader& reader, Names& names, KnownIds& known);

  // Interned id of a raw one, 0 = unknown; `*missing` is set where a later refresh() may make it known.
  NameId name(std::uint32_t raw, bool* missing);
  SiteId site(std::uint32_t raw, bool* missing);
  SiteId stack(const flight::Frame* frames, std::uint32_t count, bool truncated, bool* missing);

  // Looks up again what was missing; true = something became known.
  bool refresh();

 private:
  NameId look_up_name(std::uint32_t raw, bool* missing);
  SiteId look_up_site(std::uint32_t raw, bool* missing);

  const flight::Reader& reader_;
  Names& names_;
  KnownIds& known_;
};

}  // namespace dshang::job
