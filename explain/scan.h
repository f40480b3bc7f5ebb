// Reads one log, in pieces of any size, and notes what it sees.
#pragma once

#include <string>
#include <string_view>

#include "explain/catalogue.h"
#include "explain/observed.h"

namespace dshang::explain {

class Scan {
 public:
  // `file` is the newest of observed->files; `speaker` has printed the lines that do not say it themselves.
  Scan(const Catalogue& catalogue, Observed* observed, Speaker speaker = {});

  void feed(std::string_view piece);
  // Nothing follows.
  void end();

 private:
  LogFile& file() const { return observed_->files.back(); }
  void look_at(std::string_view text);
  void look_at_line(std::string_view raw, std::string_view before, bool whole);
  void use(const Catalogue::Use& use, const Line& line, std::size_t at);
  void sight(Sighting& sighting, const Line& line, const Catalogue::Use& use, std::size_t at);
  std::string quote(const Catalogue::Use& use, const Line& line, std::size_t at) const;
  // What the same rank printed in the line above; "" where that is another's.
  std::string line_above(const Line& line) const;
  void sight_out_of_memory(const Line& line, const Catalogue::Use& use, std::size_t at);
  void take_world_size(const Line& line, std::size_t at);
  void take_failed_rank(const Line& line, std::size_t at);
  // Moves the line number on to the one that begins before `to`.
  void count_lines(const char* to);
  void keep_last_line(std::string_view text);

  const Catalogue& catalogue_;
  Observed* observed_;
  const Speaker speaker_;
  std::string rest_;  // a line that has not ended
  const char* counted_ = nullptr;
  std::string colourless_;
  std::string_view before_;  // the text above the present line, as far as it is at hand; null within a line
  std::vector<const Catalogue::Use*> used_;  // in the present line
};

}  // namespace dshang::explain
