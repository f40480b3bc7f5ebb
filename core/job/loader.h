// Decodes one look at a process (load.h): what load.cpp, load_process.cpp and load_records.cpp share.  Not
// for others.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/job/load.h"

namespace dshang::job {

class Loader {
 public:
  Loader(RankRecords& records, const flight::Reader& reader, Names& names, LoadState& state)
      : records_(records),
        reader_(reader),
        names_(names),
        state_(state),
        ids_(reader, names, state.ids),
        header_(reader.header()) {}

  bool run();

 private:
  void name_waiting();

  template <typename T>
  void set(T& field, T value);
  void identity();
  void counters();
  void ops();
  void comms();
  void threads();
  bool call(std::uint64_t n, Call* out);  // false = may still change
  bool visit(std::uint64_t n, Visit* out);
  bool memory_step(std::uint64_t n, MemoryStep* out);
  bool alloc_failure(std::uint64_t n, AllocFailure* out);
  bool fact(std::uint64_t n, FactRecord* out);
  bool exception(std::uint64_t n, Exception* out);
  bool stack(std::uint64_t n, Stack* out);
  void calls();
  void refresh_calls();
  void alloc_failures();
  template <typename T>
  void ring(flight::Ring ring, Window<T>& window, std::vector<std::uint64_t>& open,
            bool (Loader::*load)(std::uint64_t, T*));
  void remember(const LoadState::Unnamed& entry);

  RankRecords& records_;
  const flight::Reader& reader_;
  Names& names_;
  LoadState& state_;
  RawIds ids_;
  const flight::Header& header_;
  bool changed_ = false;
};

template <typename T>
void Loader::set(T& field, T value) {
  if (field == value) return;
  field = std::move(value);
  changed_ = true;
}

// Nothing about a call with these flags changes any more.
bool settled(std::uint32_t flags);

// `value` where it is one that is known.
template <typename Enum>
Enum known(Enum value, Enum last, Enum fallback) {
  return static_cast<unsigned>(value) <= static_cast<unsigned>(last) ? value : fallback;
}

}  // namespace dshang::job
