// The versions of NCCL and of the CUDA runtime that this process talks to, as facts of its flight memory.
#pragma once

#include "core/flight/writer.h"
#include "interpose/resolve/resolver.h"

namespace dshang::interpose::comms {

// Facts `version.nccl` ("2.27.3"), by ncclGetVersion of the library, which answers without CUDA, and
// `version.cuda_runtime` ("12.8"), by cudaRuntimeGetVersion where a context is current already: before
// CUDA 12.0 it initialised CUDA.  What is not there is not recorded.  At the first communicator.
void record_versions(const flight::Writer& writer, resolve::LibraryId library);

// ncclGetVersion's number as text: 1000 * major + 100 * minor + patch up to 2.8, later 10000 * major + ...
// (nccl.h, NCCL_VERSION).
struct VersionText {
  char text[32];
};
VersionText nccl_version_text(int code);

}  // namespace dshang::interpose::comms
