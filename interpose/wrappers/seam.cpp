// What the runtime calls back (runtime/api.h, namespace wrappers).
#include "interpose/calls/numbers.h"
#include "interpose/calls/thread.h"
#include "interpose/comms/life.h"
#include "interpose/resolve/elf.h"
#include "interpose/resolve/resolver.h"
#include "interpose/runtime/api.h"
#include "interpose/symbols/rows.h"

namespace dshang::interpose::wrappers {

const flight::OpInfo* ops() { return kOpTable.ops; }
std::uint32_t op_count() { return kOpTable.count; }

void woke(const flight::Writer& writer) {
  calls::intern_names(writer);
  calls::forget_numbers();
  comms::forget_communicators();
  calls::wakings.fetch_add(1, std::memory_order_relaxed);
}

bool is_own_address(const void* address) { return resolve::is_own(address); }
void* real_function(const char* name) { return resolve::anywhere(name); }
bool nccl_seen() { return resolve::nccl_seen(); }

}  // namespace dshang::interpose::wrappers
