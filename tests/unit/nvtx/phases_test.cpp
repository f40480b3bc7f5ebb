#include "interpose/nvtx/phases.h"

#include <string>

#include "catch.h"
#include "interpose/nvtx/handles.h"

using namespace dshang::nvtx;

namespace {

std::string phase(const char* name, RangeDomain domain = RangeDomain::kDefault) {
  const char* found = phase_of(domain, name);
  return found ? found : "";
}

}  // namespace

TEST_CASE("the ranges of DeepSpeed that stand for a phase") {
  CHECK(phase("DeepSpeedEngine.forward") == "forward");
  CHECK(phase("DeepSpeedEngine.backward") == "backward");
  CHECK(phase("DeepSpeedEngine.allreduce_gradients") == "backward");
  CHECK(phase("DeepSpeedZeroOptimizer_Stage3.step") == "optimizer");
  CHECK(phase("SuperOffloadOptimizer_Stage3.step") == "optimizer");
  CHECK(phase("DeepSpeedZeRoOffload._register_deepspeed_module.<locals>._run_before_backward_function") ==
        "backward");
  CHECK(phase("DeepSpeedZeroOptimizer_Stage3.independent_gradient_partition_epilogue") == "backward");
}

TEST_CASE("other ranges stand for none") {
  for (const char* name :
       {"", "forward", "Engine.forward", "MyDeepSpeedEngine.forward", "DeepSpeedEngine.forward.more",
        "PartitionedParameterCoordinator.fetch_sub_module", "Handle.wait", "step", "Adam.step"}) {
    CHECK(phase(name) == "");
  }
  CHECK(phase_of(RangeDomain::kDefault, static_cast<const char*>(nullptr)) == nullptr);
  CHECK(phase_of(RangeDomain::kDefault, static_cast<const wchar_t*>(nullptr)) == nullptr);
}

TEST_CASE("a plain step counts in DeepSpeed's domain alone") {
  CHECK(phase("step", RangeDomain::kDeepSpeed) == "optimizer");
  CHECK(phase("other_step", RangeDomain::kDeepSpeed) == "");
}

TEST_CASE("wide names are read where they are short and of ASCII letters") {
  CHECK(phase_of(RangeDomain::kDefault, L"DeepSpeedEngine.forward") == std::string("forward"));
  CHECK(phase_of(RangeDomain::kDefault, L"DeepSpeedEngine.forwärd") == nullptr);
  CHECK(phase_of(RangeDomain::kDefault, (std::wstring(1000, L'.') + L"DeepSpeedEngine.forward").c_str()) ==
        nullptr);
}

TEST_CASE("handles are found, forgotten when they are given again, and limited") {
  static Handles handles;
  int things[300] = {};
  handles.note(&things[0], "forward");
  CHECK(handles.find(&things[0]) == std::string("forward"));
  CHECK(handles.find(&things[1]) == nullptr);
  handles.note(&things[0], nullptr);
  CHECK(handles.find(&things[0]) == nullptr);
  handles.note(nullptr, "forward");
  CHECK(handles.find(nullptr) == nullptr);
  static const char* const kValue = "backward";
  const void* own = handles.own(kValue);
  CHECK(own != nullptr);
  CHECK(handles.own(kValue) == own);
  CHECK(handles.find(own) == std::string("backward"));
  for (int& thing : things) handles.note(&thing, "optimizer");
  CHECK(handles.find(&things[10]) == std::string("optimizer"));
  CHECK(handles.find(&things[299]) == nullptr);
  CHECK(handles.own("another") == nullptr);
}
