// Names that were said before the process woke: a small table in static memory, untouched in processes that
// say none.
//
// An early id has kEarly set; it stays valid for the life of the process and in its forked children.
// Threads: any.  Failure: a full table gives 0.
#pragma once

#include <cstdint>

#include "core/flight/writer.h"

namespace dshang::rank {

inline constexpr std::uint32_t kEarly = 0x80000000u;

// At most kEarlyLength bytes are kept.
inline constexpr unsigned kEarlyNames = 128, kEarlyLength = 119;
std::uint32_t early_name(const char* name);

// The writer's id of an early one; other ids are returned as they are.
std::uint32_t late_name(const flight::Writer& writer, std::uint32_t id);

// Notes to be written at waking: pairs of early names.  More than kEarlyNotes are dropped.
inline constexpr unsigned kEarlyNotes = 64;
void early_note(std::uint32_t key, std::uint32_t value);
void write_early_notes(const flight::Writer& writer);

}  // namespace dshang::rank
