// What the test preload exports besides: what it has seen.
#include "runtime_double.h"

extern "C" {
__attribute__((visibility("default"))) std::uint64_t double_calls() {
  const dshang::flight::Writer* writer = dshang::interpose::runtime::recorder();
  return writer ? writer->header().call_head.load() : 0;
}
__attribute__((visibility("default"))) std::uint64_t double_memory_notes() { return runtime_double::state.memory.size(); }
}
