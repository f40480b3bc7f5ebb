// Python tracebacks, put together again for each rank whose lines are mixed with those of others.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "explain/line.h"

namespace dshang::explain {

struct Trace {
  Speaker who;
  Place first, last;
  std::vector<std::string> frames;  // "File "train.py", line 3, in main", outermost first; the innermost kept
  std::string error;                // "ValueError: text"
  bool known = false;               // an entry of the catalogue stands in it or right behind it
  bool ignored = false;             // "Exception ignored in": the program went on

  // The error and the frame that raised it.
  bool same(const Trace& other) const {
    bool frame = frames.empty() || other.frames.empty() ? frames.empty() == other.frames.empty()
                                                        : frames.back() == other.frames.back();
    return frame && error == other.error;
  }
};

class Traces {
 public:
  // Whether any rank's traceback has begun and not ended: then every line is to be given to take().
  bool open() const { return !open_.empty(); }
  void take(const Line& line);
  // The file has ended.
  void end();

  // Frames above a line, joined with line ends; "" where there are none.
  std::string frames_above(const Line& line);
  // The line is known.
  void mark_known(const Line& line);

  // In the order in which they ended; the first kMost only.
  const std::vector<Trace>& all() const { return all_; }
  // The first that says something that nothing else explains, nullptr = none.
  const Trace* first_unknown() const;
  // The same error at the same place, from whichever ranks printed it.
  struct Unknown {
    const Trace* first;
    std::set<Speaker> speakers;
    std::uint64_t count;
  };
  // From first_unknown() on; at most `most`.
  std::vector<Unknown> unknown(std::size_t most) const;

 private:
  void close(Trace trace, const Line& line);
  // The traceback that the line is in, or right behind.
  Trace* around(const Line& line);

  std::map<Speaker, Trace> open_;
  std::map<Speaker, std::size_t> latest_;   // in all_
  std::map<Speaker, std::size_t> chained_;  // the next is a consequence of this one, or the other way round
  std::map<Speaker, Place> ignored_;        // where "Exception ignored in" stood
  std::vector<Trace> all_;
};

}  // namespace dshang::explain
