#include <cmath>
#include <nlohmann/json.hpp>

#include "core/job/report.h"
#include "core/job/version.h"

namespace dshang::job {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

double milliseconds(double seconds) { return std::round(seconds * 1000) / 1000; }

Json json_of(const Side& side) {
  return {{"ranks", side.ranks},
          {"op", or_null(side.op)},
          {"count", or_null(side.count)},
          {"dtype", or_null(side.dtype)},
          {"reduce_op", or_null(side.reduce_op)},
          {"root", or_null(side.root)},
          {"peer", or_null(side.peer)},
          {"step", or_null(side.step)},
          {"phase", or_null(side.phase)},
          {"module", or_null(side.module)},
          {"site", or_null(side.site)},
          {"user_site", or_null(side.user_site)}};
}

Json json_of(const Finding& f) {
  Json sides = Json::array();
  for (const Side& side : f.sides) sides.push_back(json_of(side));
  return {{"class", f.type},
          {"severity", text_of(f.severity)},
          {"certainty", text_of(f.certainty)},
          {"class_certainty", text_of(f.class_certainty)},
          {"resolved", f.resolved ? Json(milliseconds(*f.resolved)) : Json(nullptr)},
          {"summary", f.summary},
          {"suspects", f.suspects},
          {"waiting", f.waiting},
          {"comm", or_null(f.comm)},
          {"comm_ranks", f.comm_ranks},
          {"call", or_null(f.call)},
          {"origin", or_null(f.origin)},
          {"agreed_until", or_null(f.agreed_until)},
          {"sides", sides},
          {"step", or_null(f.step)},
          {"evidence", f.evidence},
          {"fix", f.fix},
          {"consequence_of", or_null(f.consequence_of)},
          {"at", milliseconds(f.at)}};
}

}  // namespace

std::string json_of(const Report& report) {
  Json findings = Json::array();
  for (const Finding& f : report.findings) findings.push_back(json_of(f));
  Json json{{"schema", 1},
            {"dshang", kVersion},
            {"job",
             {{"world_size", report.world_size},
              {"nodes", report.nodes},
              {"dir", report.dir},
              {"started", report.started}}},
            {"verdict", verdict_of(report)},
            {"as_of", milliseconds(report.as_of)},
            {"findings", findings},
            {"not_checked", report.not_checked}};
  // A name that is no valid UTF-8 must not cost the report.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace dshang::job
