#include "core/job/names.h"

#include <algorithm>

#include "core/job/site_policy.h"

namespace dshang::job {
namespace {

// The part of a path that is equal on machines where the project lies elsewhere.
std::string_view last_two_components(std::string_view path) {
  std::size_t slash = path.rfind('/');
  if (slash == path.npos || slash == 0) return path;
  std::size_t before = path.rfind('/', slash - 1);
  return before == path.npos ? path : path.substr(before + 1);
}

void append_number(std::string& key, std::uint32_t number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append_frame(std::string& key, const FrameName& frame) {
  append_number(key, frame.file);
  append_number(key, frame.function);
  append_number(key, static_cast<std::uint32_t>(frame.line));
}

}  // namespace

Names::Names() {
  names_.emplace_back();
  sites_.emplace_back();
  places_.emplace_back();
}

NameId Names::name(std::string_view text) {
  if (text.empty()) return 0;
  auto found = name_ids_.find(text);
  if (found != name_ids_.end()) return found->second;
  NameId id = static_cast<NameId>(names_.size());
  names_.emplace_back(text);
  name_ids_.emplace(names_.back(), id);  // a deque does not move its strings
  return id;
}

void Names::set_site_skip(std::vector<std::string> endings) {
  std::erase(endings, std::string());
  if (endings == site_skip_) return;
  site_skip_ = std::move(endings);
  for (std::size_t id = 1; id < sites_.size(); ++id) find_places(sites_[id]);
}

SiteId Names::site(std::vector<FrameName> frames, bool truncated) {
  if (frames.empty()) return 0;
  std::string key(1, truncated ? '1' : '0');
  for (const FrameName& frame : frames) append_frame(key, frame);
  auto [found, is_new] = site_ids_.try_emplace(std::move(key), static_cast<SiteId>(sites_.size()));
  if (is_new) {
    sites_.push_back({std::move(frames), truncated, 0, 0});
    find_places(sites_.back());
  }
  return found->second;
}

void Names::find_places(Site& site) {
  site.place = site.user_place = 0;
  for (const FrameName& frame : site.frames) {
    const std::string& file = text(frame.file);
    bool skipped = std::any_of(site_skip_.begin(), site_skip_.end(),
                               [&](const std::string& ending) { return file.ends_with(ending); });
    FrameOwner owner = frame_owner(file);
    if (skipped || owner == FrameOwner::kGlue || owner == FrameOwner::kFramework) continue;
    if (!site.place) site.place = place(frame);
    if (owner == FrameOwner::kUser) {
      site.user_place = place(frame);
      return;
    }
  }
}

PlaceId Names::place(const FrameName& frame) {
  FrameName short_frame = frame;
  short_frame.file = name(last_two_components(text(frame.file)));
  std::string key;
  append_frame(key, short_frame);
  auto [found, is_new] = place_ids_.try_emplace(std::move(key), static_cast<PlaceId>(places_.size()));
  if (is_new) places_.push_back(short_frame);
  return found->second;
}

std::string Names::place_text(PlaceId id) const {
  if (id == 0 || id >= places_.size()) return {};
  const FrameName& frame = places_[id];
  std::string out = frame.file ? text(frame.file) : "?";
  out += ':' + std::to_string(frame.line);
  if (frame.function) out += ' ' + text(frame.function);
  return out;
}

}  // namespace dshang::job
