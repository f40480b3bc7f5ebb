// The records of a job as the page of report.html draws them: JSON, with texts and call sites interned.
//
// Form (html/data.js is its only reader): times are microseconds since job start, ranks are global, lists of
// ranks are texts like "0-6, 8", texts and sites are indices into `texts` and `sites` (0 = not known).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>

#include "core/job/classes.h"

namespace dshang::job {

using PageJson = nlohmann::ordered_json;

// Each text once, long ones cut.
class PageTexts {
 public:
  PageTexts() { number_of(""); }
  std::size_t number_of(const std::string& text);
  PageJson take() { return std::move(texts_); }

 private:
  PageJson texts_ = PageJson::array();
  std::unordered_map<std::string, std::size_t> numbers_;
};

// Each call site once: its place, and the whole stack.
class PageSites {
 public:
  PageSites(const Names& names, PageTexts& texts) : names_(names), texts_(texts) { number_of(0); }
  std::size_t number_of(SiteId site);
  PageJson take() { return std::move(sites_); }

 private:
  const Names& names_;
  PageTexts& texts_;
  PageJson sites_ = PageJson::array();
  std::unordered_map<SiteId, std::size_t> numbers_;
};

std::string frame_text(const Names& names, const FrameName& frame);  // "model/block.py:12 forward"
PageJson page_time(const JobView& view, std::uint64_t ns);           // null for 0
PageJson page_step(std::int64_t step);                               // null for kNoStep

// "memory" of the page: per rank the marks of its steps, and what made its peak.
PageJson page_memory(const JobView& view, PageTexts& texts, PageSites& sites);
// "stacks": {main, others}, each a list of [frame, ranks, read here, call here, inner].
PageJson page_stacks(const JobView& view, PageTexts& texts);
// The whole page, but for the report itself.
PageJson page_data(const JobView& view, const Report& report);

}  // namespace dshang::job
