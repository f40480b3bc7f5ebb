// One rank process as the loader sees it: a flight memory and what was loaded from it so far.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/flight/writer.h"
#include "core/job/load.h"

namespace dshang::job::test {

inline constexpr flight::OpInfo kOps[] = {
    {"all_gather", flight::kOpCollective, 0},
    {"reduce_scatter", flight::kOpCollective | flight::kOpReduces, 0},
    {"broadcast", flight::kOpCollective | flight::kOpRooted, 0},
    {"send", flight::kOpSend, 0},
};

struct Process {
  Process() : words(new std::uint64_t[flight::Writer::total_bytes() / 8]()) {
    flight::Identity identity;
    identity.rank = 1;
    identity.world_size = 2;
    identity.start_ns = 1000;
    writer = flight::Writer::format(words.get(), identity, kOps, sizeof kOps / sizeof kOps[0]);
  }

  template <typename T>
  T* section(flight::Section which) {
    auto* base = reinterpret_cast<unsigned char*>(words.get());
    return reinterpret_cast<T*>(base + writer.header().sections[static_cast<unsigned>(which)].offset);
  }

  bool update() {
    return job::update(records, flight::Reader(words.get(), flight::Writer::total_bytes()), *names, state);
  }

  std::uint32_t comm(std::uint64_t id) {
    std::uint32_t index = 0;
    flight::CommEntry* entry = writer.open_comm(&index);
    entry->id = id;
    entry->size = 2;
    entry->state.store(flight::CommState::kReady);
    return index;
  }

  struct Raw {
    std::uint64_t count = 0;
    std::uint32_t comm = 0, site = 0, module = 0, phase = 0;
    std::uint32_t flags = 0;
    std::uint8_t op = 0;
  };
  std::uint64_t call(const Raw& raw) {
    auto open = writer.open_call();
    open->number = open.n() + 1;
    open->count = raw.count;
    open->comm = raw.comm;
    open->site = raw.site;
    open->module = raw.module;
    open->phase = raw.phase;
    open->op = raw.op;
    open->dtype = flight::DType::kBF16;
    open->enter_ns = 2000 + open.n();
    open->flags.store(raw.flags);
    open.complete();
    return open.n();
  }

  std::uint32_t unresolved_site(std::uint64_t key) {
    bool is_new = false;
    return writer.site(key, &is_new);
  }
  void resolve(std::uint32_t site, const std::vector<std::pair<std::string, std::string>>& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      writer.site_entry(site).frames[i] = {writer.string(frames[i].first.c_str()),
                                           writer.string(frames[i].second.c_str()),
                                           static_cast<std::int32_t>(i) + 10};
    }
    writer.resolve_site(site, static_cast<std::uint32_t>(frames.size()));
  }

  const std::string& text(NameId id) const { return names->text(id); }

  std::unique_ptr<std::uint64_t[]> words;
  flight::Writer writer;
  std::shared_ptr<Names> names = std::make_shared<Names>();
  RankRecords records;
  LoadState state;
};

inline constexpr std::uint32_t kDoneFlags = flight::kCallReturned | flight::kCallMarked |
                                            flight::kCallStartMarked | flight::kCallStarted |
                                            flight::kCallDone;

}  // namespace dshang::job::test
