#include "interpose/nvtx/callbacks.h"

#include <string.h>

#include <atomic>

#include "interpose/nvtx/handles.h"
#include "interpose/nvtx/phases.h"
#include "interpose/nvtx/recorder.h"

namespace dshang::nvtx {
namespace {

constexpr char kDeepSpeed[] = "DeepSpeed";
constexpr std::uint32_t kDefault = static_cast<std::uint32_t>(RangeDomain::kDefault);

bool is_deepspeed(const char* name) { return name && strcmp(name, kDeepSpeed) == 0; }

bool is_deepspeed(const wchar_t* name) {
  for (std::size_t i = 0; name; ++i) {
    if (name[i] != static_cast<wchar_t>(kDeepSpeed[i])) return false;
    if (!kDeepSpeed[i]) return true;
  }
  return false;
}

const char* phase_in(std::uint32_t domain, const Attributes* attributes) {
  // A shorter structure is of a version that nobody has; it is not read.
  if (!attributes || attributes->size < sizeof(Attributes)) return nullptr;
  RangeDomain which = static_cast<RangeDomain>(domain);
  switch (attributes->message_type) {
    case MessageType::kAscii:
      return phase_of(which, static_cast<const char*>(attributes->message));
    case MessageType::kUnicode:
      return phase_of(which, static_cast<const wchar_t*>(attributes->message));
    case MessageType::kRegistered:
      return strings.find(attributes->message);
    default:
      return nullptr;
  }
}

void push(std::uint32_t domain, const char* phase) {
  if (domain != kNoDomain && dshang_range_push) dshang_range_push(domain, phase);
}

void pop(std::uint32_t domain) {
  if (domain != kNoDomain && dshang_range_pop) dshang_range_pop(domain);
}

// Instances whose tool has the same functions share a set.  Set 0 is that of instances without a tool.
constexpr unsigned kSets = 8;
struct Set {
  std::atomic<int> state;  // 0 free, 1 being filled, 2 filled
  Next next;
  bool has_tool;
};
Set sets[kSets];

// Where there is no tool: every domain that is not DeepSpeed's.  Null would be the default domain.
constexpr char kOtherDomain = 0;

template <typename Character>
const void* create(const void* handle, const Character* name, bool has_tool) {
  bool looked_at = is_deepspeed(name);
  if (!has_tool) return looked_at ? domains.own(kDeepSpeed) : &kOtherDomain;
  domains.note(handle, looked_at ? kDeepSpeed : nullptr);
  return handle;
}

template <typename Character>
const void* registered(const void* handle, const void* domain, const Character* text, bool has_tool) {
  std::uint32_t which = domain_of(domain);
  const char* phase = which == kNoDomain ? nullptr : phase_of(static_cast<RangeDomain>(which), text);
  if (!has_tool) return phase ? strings.own(phase) : nullptr;
  strings.note(handle, phase);
  return handle;
}

template <unsigned I>
struct Callbacks {
  static const Next& next() { return sets[I].next; }

  static int push_ex(const Attributes* attributes) {
    push(kDefault, phase_in(kDefault, attributes));
    return next().push_ex ? next().push_ex(attributes) : kNoTracking;
  }
  static int push_a(const char* name) {
    push(kDefault, phase_of(RangeDomain::kDefault, name));
    return next().push_a ? next().push_a(name) : kNoTracking;
  }
  static int push_w(const wchar_t* name) {
    push(kDefault, phase_of(RangeDomain::kDefault, name));
    return next().push_w ? next().push_w(name) : kNoTracking;
  }
  static int pop_one() {
    pop(kDefault);
    return next().pop ? next().pop() : kNoTracking;
  }
  static int domain_push(const void* domain, const Attributes* attributes) {
    std::uint32_t which = domain_of(domain);
    push(which, which == kNoDomain ? nullptr : phase_in(which, attributes));
    return next().domain_push ? next().domain_push(domain, attributes) : kNoTracking;
  }
  static int domain_pop(const void* domain) {
    pop(domain_of(domain));
    return next().domain_pop ? next().domain_pop(domain) : kNoTracking;
  }
  static const void* register_a(const void* domain, const char* text) {
    const void* handle = next().register_a ? next().register_a(domain, text) : nullptr;
    return registered(handle, domain, text, sets[I].has_tool);
  }
  static const void* register_w(const void* domain, const wchar_t* text) {
    const void* handle = next().register_w ? next().register_w(domain, text) : nullptr;
    return registered(handle, domain, text, sets[I].has_tool);
  }
  static const void* create_a(const char* name) {
    const void* handle = next().create_a ? next().create_a(name) : nullptr;
    return create(handle, name, sets[I].has_tool);
  }
  static const void* create_w(const wchar_t* name) {
    const void* handle = next().create_w ? next().create_w(name) : nullptr;
    return create(handle, name, sets[I].has_tool);
  }
};

template <typename F>
void put(Function** slots, unsigned size, unsigned at, F* function) {
  if (at < size && slots[at]) *slots[at] = reinterpret_cast<Function>(function);
}

template <unsigned I>
void put_all(Function** core, unsigned core_size, Function** core2, unsigned core2_size) {
  using Own = Callbacks<I>;
  put(core, core_size, kRangePushEx, Own::push_ex);
  put(core, core_size, kRangePushA, Own::push_a);
  put(core, core_size, kRangePushW, Own::push_w);
  put(core, core_size, kRangePop, Own::pop_one);
  put(core2, core2_size, kDomainRangePushEx, Own::domain_push);
  put(core2, core2_size, kDomainRangePop, Own::domain_pop);
  put(core2, core2_size, kDomainRegisterStringA, Own::register_a);
  put(core2, core2_size, kDomainRegisterStringW, Own::register_w);
  put(core2, core2_size, kDomainCreateA, Own::create_a);
  put(core2, core2_size, kDomainCreateW, Own::create_w);
}

using PutAll = void (*)(Function**, unsigned, Function**, unsigned);
constexpr PutAll kPutAll[kSets] = {put_all<0>, put_all<1>, put_all<2>, put_all<3>,
                                   put_all<4>, put_all<5>, put_all<6>, put_all<7>};

// kSets = no room.
unsigned set_of(const Next& next, bool has_tool) {
  for (unsigned i = 0; i < kSets; ++i) {
    int state = 0;
    if (sets[i].state.compare_exchange_strong(state, 1, std::memory_order_acq_rel)) {
      sets[i].next = next;
      sets[i].has_tool = has_tool;
      sets[i].state.store(2, std::memory_order_release);
      return i;
    }
    // Another thread fills it at this moment, with a few stores.
    while (sets[i].state.load(std::memory_order_acquire) == 1) {
    }
    if (sets[i].has_tool == has_tool && memcmp(&sets[i].next, &next, sizeof next) == 0) return i;
  }
  return kSets;
}

}  // namespace

bool attach(Function** core, unsigned core_size, Function** core2, unsigned core2_size, const Next& next,
            bool has_tool) {
  unsigned set = set_of(next, has_tool);
  if (set == kSets) return false;
  kPutAll[set](core, core_size, core2, core2_size);
  return true;
}

}  // namespace dshang::nvtx
