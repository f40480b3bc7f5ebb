// What the monitor knows of a job as OpenMetrics text (https://openmetrics.io, version 1.0.0), for Prometheus
// and its like.
//
// Pure.  A name of a metric stays what it is: dashboards rest on them; docs/metrics.md lists them all.
#pragma once

#include <string>

#include "core/job/job.h"
#include "core/job/report.h"

namespace dshang::monitor {

inline constexpr const char* kMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

// Costs a walk over the newest visits of each rank, never over all records.
std::string metrics_of(const job::Job& job, const job::Report& report);

}  // namespace dshang::monitor
