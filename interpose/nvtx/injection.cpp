// libdshang_nvtx.so: what NVTX loads because libdshang.so named it in NVTX_INJECTION64_PATH
// (interpose/runtime/nvtx.h).
//
// A tool that was named there before stands in DSHANG_NVTX_NEXT.  It is loaded and initialised first, as NVTX
// itself would, and sees every call.  Without libdshang.so in the process dshang's functions are absent, and
// only it is served.
#include <stdlib.h>
#include <string.h>

#include "interpose/nvtx/callbacks.h"
#include "interpose/nvtx/loader.h"
#include "interpose/nvtx/recorder.h"

extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtx2(dshang::nvtx::GetTable get_table);

namespace dshang::nvtx {
namespace {

constexpr unsigned kMostModules = 8, kMostSlots = 32;

struct Slots {
  Function** at = nullptr;
  unsigned size = 0;
};

Slots slots_of(const CallbacksTable& table, Module module) {
  Slots slots;
  if (!table.module(module, &slots.at, &slots.size) || !slots.at) return {};
  return slots;
}

// What stands in an instance's pointers, to see what a tool changes.
class Standing {
 public:
  explicit Standing(const CallbacksTable& table) {
    for (Module module : kModules) {
      unsigned index = static_cast<unsigned>(module);
      slots_[index] = slots_of(table, module);
      for (unsigned i = 0; i < slots_[index].size && i < kMostSlots; ++i) {
        if (slots_[index].at[i]) kept_[index][i] = *slots_[index].at[i];
      }
    }
  }

  const Slots& slots(Module module) const { return slots_[static_cast<unsigned>(module)]; }

  // The function that a tool has put there since, else null.
  template <typename F>
  void changed(Module module, unsigned at, F** function) const {
    const Slots& slots = this->slots(module);
    if (at >= slots.size || at >= kMostSlots || !slots.at[at]) return;
    Function now = *slots.at[at];
    if (now != kept_[static_cast<unsigned>(module)][at]) *function = reinterpret_cast<F*>(now);
  }

  void put_back() const {
    for (unsigned index = 0; index < kMostModules; ++index) {
      for (unsigned i = 0; i < slots_[index].size && i < kMostSlots; ++i) {
        if (slots_[index].at[i]) *slots_[index].at[i] = kept_[index][i];
      }
    }
  }

 private:
  Slots slots_[kMostModules];
  Function kept_[kMostModules][kMostSlots] = {};
};

Next changed_functions(const Standing& standing) {
  Next next{};
  standing.changed(Module::kCore, kRangePushEx, &next.push_ex);
  standing.changed(Module::kCore, kRangePushA, &next.push_a);
  standing.changed(Module::kCore, kRangePushW, &next.push_w);
  standing.changed(Module::kCore, kRangePop, &next.pop);
  standing.changed(Module::kCore2, kDomainRangePushEx, &next.domain_push);
  standing.changed(Module::kCore2, kDomainRangePop, &next.domain_pop);
  standing.changed(Module::kCore2, kDomainRegisterStringA, &next.register_a);
  standing.changed(Module::kCore2, kDomainRegisterStringW, &next.register_w);
  standing.changed(Module::kCore2, kDomainCreateA, &next.create_a);
  standing.changed(Module::kCore2, kDomainCreateW, &next.create_w);
  return next;
}

// The tool's library stays loaded: its functions are in use.
bool initialise_next(const char* path, GetTable get_table) {
  void* library = open_library(path);
  auto initialise =
      library ? reinterpret_cast<Initialize>(symbol_of(library, "InitializeInjectionNvtx2")) : nullptr;
  if (!initialise || initialise == InitializeInjectionNvtx2) return false;
  return initialise(get_table) != 0;
}

}  // namespace
}  // namespace dshang::nvtx

// Called by each instance at its first call, by one thread; others of it wait.
int InitializeInjectionNvtx2(dshang::nvtx::GetTable get_table) {
  using namespace dshang::nvtx;
  const void* table = get_table ? get_table(kCallbacksTable) : nullptr;
  auto callbacks = static_cast<const CallbacksTable*>(table);
  if (!callbacks || callbacks->struct_size < sizeof(CallbacksTable)) return 0;
  Standing standing(*callbacks);
  const char* path = getenv("DSHANG_NVTX_NEXT");
  bool wanted = path && *path;
  bool has_tool = wanted && initialise_next(path, get_table);
  if (wanted && !has_tool) {
    standing.put_back();
    if (dshang_note) dshang_note("nvtx.next_failed", path);
  }
  if (!dshang_range_push) return has_tool;
  const Slots core = standing.slots(Module::kCore), core2 = standing.slots(Module::kCore2);
  bool attached = attach(core.at, core.size, core2.at, core2.size, changed_functions(standing), has_tool);
  return attached || has_tool;
}
