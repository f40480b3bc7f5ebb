// Names and call sites, interned once for the whole job, so that ranks are compared by number.
//
// Threads: one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dshang::job {

using NameId = std::uint32_t;  // 0 = unknown
using SiteId = std::uint32_t;  // a whole Python stack; 0 = unknown
using PlaceId =
    std::uint32_t;  // one source line: file (last two path components), function, line; 0 = unknown

struct FrameName {
  NameId file = 0;
  NameId function = 0;
  std::int32_t line = 0;
  friend bool operator==(const FrameName&, const FrameName&) = default;
};

struct Site {
  std::vector<FrameName> frames;  // innermost first, as recorded
  bool truncated = false;
  PlaceId place = 0;       // first frame outside the frameworks: the *site* of reports
  PlaceId user_place = 0;  // first frame outside site-packages and the standard library
};

class Names {
 public:
  Names();
  NameId name(std::string_view text);
  const std::string& text(NameId id) const { return names_[id]; }  // "" for 0

  // File name endings of the user's own wrapper modules (DSHANG_SITE_SKIP).  Sites that are already there get
  // their places anew, so that the order of calls does not matter.
  void set_site_skip(std::vector<std::string> endings);
  const std::vector<std::string>& site_skip() const { return site_skip_; }

  // Equal frames give an equal id; 0 for no frames.
  SiteId site(std::vector<FrameName> frames, bool truncated);
  const Site& site(SiteId id) const { return sites_[id]; }
  std::uint32_t site_count() const { return static_cast<std::uint32_t>(sites_.size()); }

  // The place of a frame, whoever's code it is; frames of files with the same last two path components,
  // function and line have the same.  place_frame(id).file is the name of those components.
  PlaceId place(const FrameName& frame);
  PlaceId place_of(SiteId id) const { return sites_[id].place; }
  const FrameName& place_frame(PlaceId id) const { return places_[id]; }
  std::string place_text(PlaceId id) const;  // "file:line function", "" for 0

 private:
  void find_places(Site& site);

  std::deque<std::string> names_;
  std::unordered_map<std::string_view, NameId> name_ids_;
  std::deque<Site> sites_;
  std::unordered_map<std::string, SiteId> site_ids_;
  std::vector<FrameName> places_;
  std::unordered_map<std::string, PlaceId> place_ids_;
  std::vector<std::string> site_skip_;
};

}  // namespace dshang::job
