#include "interpose/runtime/nvtx.h"

#include <stdlib.h>
#include <string.h>

#include "core/rank/param.h"
#include "core/rank/say.h"
#include "interpose/runtime/beside.h"

DSHANG_PARAM(bool, NVTX, "0", "0|1",
             "1: the ranges that DeepSpeed marks with NVTX are phases, without the Python probe");
DSHANG_PARAM(string, NVTX_NEXT, "", "path of a library",
             "another tool for NVTX, called behind dshang's; set by dshang itself to what "
             "NVTX_INJECTION64_PATH named");

namespace dshang::interpose::nvtx {
namespace {

constexpr char kFile[] = "libdshang_nvtx.so";

// This library's, or another copy's that a parent was started with.
bool is_own(const char* path) {
  const char* slash = strrchr(path, '/');
  return strcmp(slash ? slash + 1 : path, kFile) == 0;
}

bool missing = false;

}  // namespace

void name_own_library() {
  if (!param_NVTX.value()) return;
  static char path[kLongestPath];
  missing = !beside_library(kFile, path, sizeof path);
  if (missing) return;
  const char* named = getenv("NVTX_INJECTION64_PATH");
  if (named && *named && !is_own(named) && setenv("DSHANG_NVTX_NEXT", named, 1) != 0) return;
  setenv("NVTX_INJECTION64_PATH", path, 1);
}

void say_what_is_missing() {
  if (!missing) return;
  missing = false;
  rank::say("DSHANG_NVTX=1 has no effect: %s is not beside libdshang.so", kFile);
}

}  // namespace dshang::interpose::nvtx
