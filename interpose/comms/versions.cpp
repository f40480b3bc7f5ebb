#include "interpose/comms/versions.h"

#include <stdio.h>

#include "interpose/runtime/api.h"

namespace dshang::interpose::comms {
namespace {

using GetVersion = int (*)(int*);

bool ask(void* function, int* version) {
  return function && reinterpret_cast<GetVersion>(function)(version) == 0 && *version > 0;
}

}  // namespace

VersionText nccl_version_text(int code) {
  const int major = code < 10000 ? 1000 : 10000;
  VersionText version;
  snprintf(version.text, sizeof version.text, "%d.%d.%d", code / major, code % major / 100, code % 100);
  return version;
}

void record_versions(const flight::Writer& writer, resolve::LibraryId library) {
  int version = 0;
  if (ask(resolve::named(library, "ncclGetVersion"), &version)) {
    writer.fact("version.nccl", nccl_version_text(version).text);
  }
  // 1000 * major + 10 * minor.
  if (runtime::current_device() >= 0 && ask(resolve::anywhere("cudaRuntimeGetVersion"), &version)) {
    char text[32];
    snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
    writer.fact("version.cuda_runtime", text);
  }
}

}  // namespace dshang::interpose::comms
