// What libdshang_dlsym.so (interpose/dlsym/) asks about the symbols that it sees being looked up.
#include "interpose/wrappers/asked.h"

#include "interpose/resolve/asked.h"
#include "interpose/resolve/elf.h"
#include "interpose/runtime/api.h"

namespace dshang::interpose {
namespace {

// Another interposer looks for the function that its own one stands for: a wrapper would send its calls round in a circle.
bool defines(const void* caller, const char* name) {
  resolve::Object object;
  return resolve::object_of(caller, &object) && resolve::defined_function(object, name);
}

}  // namespace

// dlsym() on a handle has found `real` for `caller`; the result is what the caller gets.
extern "C" [[gnu::visibility("default")]] void* dshang_symbol_asked(const char* name, void* real, const void* caller) {
  if (runtime::disabled() || resolve::is_own(caller) || resolve::is_own(real)) return real;
  const char* plain = *name == 'p' ? name + 1 : name;  // pncclX is ncclX
  AskedWrapper wrapper = asked_wrapper(plain);
  if (!wrapper.function || defines(caller, plain)) return real;
  return resolve::ask(wrapper.row, real) ? wrapper.function : real;
}

}  // namespace dshang::interpose
