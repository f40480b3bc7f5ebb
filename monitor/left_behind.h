// What a monitor that was killed left of an attempt that still runs (its node-local copy names everything).
#pragma once

#include <optional>

#include "monitor/attempt_files.h"
#include "monitor/replay.h"
#include "monitor/settings.h"

namespace dshang::monitor {

struct LeftBehind {
  Replay replay;
  AttemptFiles::Place place;
  int number = 0;
};

// Absent when there is none, when none of its processes lives any more, or when it cannot be read.
std::optional<LeftBehind> find_left_behind(const Settings& settings);

}  // namespace dshang::monitor
