// The functions of include/dshang.h.
#include <errno.h>

#include "core/rank/awake.h"
#include "core/rank/context.h"
#include "core/rank/pyframes.h"
#include "dshang.h"

namespace {

using dshang::flight::Writer;
namespace rank = dshang::rank;

class KeepErrno {
 public:
  KeepErrno() : kept_(errno) {}
  ~KeepErrno() { errno = kept_; }

 private:
  int kept_;
};

}  // namespace

extern "C" {

void dshang_step(int64_t step) {
  KeepErrno keep;
  if (Writer writer = rank::awake()) {
    rank::begin_step(writer, step, rank::call_site(writer));
  } else {
    rank::remember_step(step);
  }
}

void dshang_phase_push(const char* name) {
  KeepErrno keep;
  if (Writer writer = rank::awake()) {
    rank::push_phase(writer, writer.string(name), rank::call_site(writer));
  } else {
    rank::remember_phase(name);
  }
}

void dshang_phase_pop(void) {
  KeepErrno keep;
  if (Writer writer = rank::awake()) {
    rank::pop_phase(writer);
  } else {
    rank::forget_phase();
  }
}

void dshang_module_push(const char* name) {
  KeepErrno keep;
  if (Writer writer = rank::awake()) {
    rank::enter_module(writer, writer.string(name), rank::call_site(writer));
  } else {
    rank::remember_module(name);
  }
}

void dshang_module_pop(void) {
  KeepErrno keep;
  if (Writer writer = rank::awake()) {
    rank::exit_module(writer);
  } else {
    rank::forget_module();
  }
}

void dshang_note(const char* key, const char* value) {
  KeepErrno keep;
  if (!key || !*key) return;
  if (Writer writer = rank::awake()) {
    writer.fact(key, value);
  } else {
    rank::remember_note(key, value);
  }
}

}  // extern "C"
