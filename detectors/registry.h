// How detectors are found: each file of this folder registers itself; nothing else names it.
//
// Two kinds.  An *explainer* is asked about a divergence (ranks of a communicator part); the first that
// recognises it, in the order of DESIGN.md section 8 point 4, gives it its class and remedy.  A *detector*
// looks at the whole job and adds findings of its own.  Both are pure functions: no clock, file, environment
// or global.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/job/divergence.h"
#include "core/job/report.h"

namespace dshang::detect {

using job::Certainty;
using job::Divergence;
using job::Finding;
using job::JobView;
using job::Rank;
using job::Severity;

struct Explanation {
  std::string summary;
  Certainty class_certainty = Certainty::kJudged;
  std::vector<std::string> evidence;  // beside what every divergence says
  std::vector<std::string> fix;       // most likely first
};

struct Explainer {
  int order;
  const char* type;  // class of contract section 5
  std::optional<Explanation> (*explain)(const JobView&, const Divergence&);
};

// What the detectors of one run share.
struct Work {
  const JobView& view;
  std::vector<Divergence> divergences;  // oldest first
  std::vector<bool> explained;          // by index of divergence
  std::vector<Finding> findings;
  std::vector<std::size_t> wants_stacks;  // as Analysis::wants_stacks
};

struct Detector {
  int order;  // lower runs first; what is found earlier may explain divergences away for later ones
  const char* type;
  void (*run)(Work&);
};

struct Registry {
  static std::vector<Explainer>& explainers();
  static std::vector<Detector>& detectors();
};

struct Registration {
  explicit Registration(Explainer explainer) { Registry::explainers().push_back(explainer); }
  explicit Registration(Detector detector) { Registry::detectors().push_back(detector); }
};

}  // namespace dshang::detect

// One line at the end of a detector's file.
#define DSHANG_EXPLAINER(order, type, function)                 \
  static const ::dshang::detect::Registration kRegistration {   \
    ::dshang::detect::Explainer { (order), (type), (function) } \
  }
#define DSHANG_DETECTOR(order, type, function)                 \
  static const ::dshang::detect::Registration kRegistration {  \
    ::dshang::detect::Detector { (order), (type), (function) } \
  }
