// DSHANG_NVTX=1: the environment names libdshang_nvtx.so as NVTX's tool.
//
// A tool that was named before is kept in DSHANG_NVTX_NEXT, which children inherit with the rest, so that
// each process finds both, whoever changed the one name on the way.
#pragma once

namespace dshang::interpose::nvtx {

// Called once, by the library's constructor: while the process has one thread and before NVTX has looked.
// Without the library beside this one, or memory, everything stays as it was.
void name_own_library();

// Says once that the library was not there, if so.
void say_what_is_missing();

}  // namespace dshang::interpose::nvtx
