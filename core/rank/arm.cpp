// arm_python() of pyframes.h: what runs once on the main thread, with the GIL.
#include <errno.h>
#include <string.h>

#include <initializer_list>

#include "core/rank/awake.h"
#include "core/rank/embedded.h"
#include "core/rank/natives.h"
#include "core/rank/param.h"
#include "core/rank/pyframes.h"
#include "core/rank/python_state.h"
#include "core/rank/say.h"

namespace dshang::rank {
namespace {

DSHANG_PARAM(bool, PROBE, "1", "0|1",
             "the Python probe: module visits, steps, phases, batch and memory facts");

enum State : int { kIdle, kPosted, kFinished };
std::atomic<int> state{kIdle};

// A reference that is dropped at the end of the block.
class Ref {
 public:
  Ref(const PythonApi& api, Object* object) : api_(api), object_(object) {}
  ~Ref() {
    if (object_) api_.dec_ref(object_);
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  Object* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  const PythonApi& api_;
  Object* object_;
};

// Kept for good once made; the GIL guards them.
Object* bootstrap;  // the namespace of bootstrap.py
Object* native_module;
bool checked, loaded;

const EmbeddedFile* embedded(const char* name) {
  for (const EmbeddedFile* file = embedded_files; file->name; ++file) {
    if (strcmp(file->name, name) == 0) return file;
  }
  return nullptr;
}

bool load_bootstrap(const PythonApi& api) {
  if (bootstrap) return true;
  const EmbeddedFile* file = embedded("bootstrap");
  Ref space(api, api.new_dict());
  if (!file || !space || api.dict_set(space.get(), "__builtins__", api.builtins()) != 0) return false;
  Ref code(api, api.compile(reinterpret_cast<const char*>(file->bytes), "<dshang>/bootstrap.py", kFileInput));
  if (!code) return false;
  Ref result(api, api.evaluate(code.get(), space.get(), space.get()));
  if (!result) return false;
  bootstrap = space.get();
  api.inc_ref(bootstrap);
  return true;
}

bool check_walk(const PythonApi& api) {
  flight::Writer writer = awake();
  if (!writer || !readable_python(writer)) return true;
  Object* getframe = api.sys("_getframe");
  Object* jit = api.sys("_jit");
  Ref frames(api, make_frames_function(api));
  if (!getframe || !frames) return false;
  Ref difference(
      api, api.call(api.dict_get(bootstrap, "check"), frames.get(), getframe, jit ? jit : api.none, nullptr));
  if (!difference) return false;
  if (difference.get() != api.none && readable_python(writer)) {
    std::intptr_t length;
    const char* text = api.text(difference.get(), &length);
    switch_python_off(writer, text ? text : "a walk differs from what Python says");
  }
  return true;
}

bool load_probe(const PythonApi& api) {
  if (loaded) return true;
  Ref sources(api, api.new_dict());
  if (!sources) return false;
  for (const EmbeddedFile* file = embedded_files; file->name; ++file) {
    if (strcmp(file->name, "bootstrap") == 0) continue;
    Ref text(api, api.new_text(reinterpret_cast<const char*>(file->bytes), file->length));
    if (!text || api.dict_set(sources.get(), file->name, text.get()) != 0) return false;
  }
  if (!native_module) native_module = make_native(api);
  Ref result(
      api, api.call(api.dict_get(bootstrap, "load"), api.module_type, api.modules(), sources.get(), nullptr));
  loaded = native_module && result;
  return loaded;
}

// `*done`: the probe does not want to be asked again.
bool arm_probe(const PythonApi& api, bool* done) {
  if (!load_probe(api)) return false;
  Ref own_file(api, make_own_file_function(api));
  if (!own_file) return false;
  Ref result(api,
             api.call(api.dict_get(bootstrap, "arm"), api.modules(), native_module, own_file.get(), nullptr));
  if (!result) return false;
  *done = api.is_true(result.get()) == 1;
  return true;
}

// An error of Python's, taken out of the thread's state.
class Error {
 public:
  explicit Error(const PythonApi& api) : api_(api) {
    api.err_fetch(&type_, &value_, &trace_);
    api.normalize(&type_, &value_, &trace_);
    if (value_ && trace_) api.set_traceback(value_, trace_);
  }
  ~Error() {
    for (Object* object : {type_, value_, trace_}) {
      if (object) api_.dec_ref(object);
    }
  }
  Error(const Error&) = delete;
  Error& operator=(const Error&) = delete;

  // What a signal's handler raised meanwhile (a Ctrl-C, a time-out): it is the program's.
  bool surfaces() const {
    if (!bootstrap || !value_) return false;
    Ref answer(api_, api_.call(api_.dict_get(bootstrap, "surfaces"), value_, nullptr));
    if (!answer) api_.err_clear();
    return answer && api_.is_true(answer.get()) == 1;
  }
  void put_back() {
    api_.err_restore(type_, value_, trace_);
    type_ = value_ = trace_ = nullptr;
  }
  void say() const {
    Ref text(api_, value_ ? api_.str(value_) : nullptr);
    std::intptr_t length = 0;
    const char* words = text ? api_.text(text.get(), &length) : nullptr;
    rank::say("the Python probe is off: %s", words ? words : "unknown error");
    api_.err_clear();
  }

 private:
  const PythonApi& api_;
  Object *type_ = nullptr, *value_ = nullptr, *trace_ = nullptr;
};

// What remains to be done was done, or cannot be done.
bool take_steps(const PythonApi& api, bool* done) {
  if (!load_bootstrap(api)) return false;
  if (!checked) {
    if (!check_walk(api)) return false;
    checked = true;
  }
  return *done || arm_probe(api, done);
}

// Runs between two bytecodes of the main thread; what it returns with surfaces there.
int pending(void*) {
  int kept_errno = errno;
  const char* missing;
  const PythonApi* api = python_api(&missing);
  // A forked child inherits the queue, and may be inert.
  if (!api || !awake() || state.load() != kPosted) return 0;
  if (python_ends()) {
    state.store(kFinished);
    return 0;
  }
  Object *type, *value, *trace;
  api->err_fetch(&type, &value, &trace);
  bool done = !param_PROBE.value(), interrupted = false;
  bool sound = take_steps(*api, &done);
  if (!sound) {
    Error error(*api);
    interrupted = error.surfaces();
    if (!interrupted) error.say();
    if (interrupted && !type) error.put_back();
  }
  if (!interrupted || type) api->err_restore(type, value, trace);
  state.store((sound && !done) || interrupted ? kIdle : kFinished);
  errno = kept_errno;
  return interrupted && !type ? -1 : 0;
}

}  // namespace

void arming_forked() {
  int posted = kPosted;
  state.compare_exchange_strong(posted, kIdle);
}

bool arm_python(const flight::Writer& writer) {
  if (state.load() == kFinished) return true;
  const char* missing = "";
  const PythonApi* api = python_api(&missing);
  if (!api) {
    // Without Py_AddPendingCall there is no interpreter here.
    if (strcmp(missing, "Py_AddPendingCall") != 0)
      say("the Python probe is off: this Python has no %s", missing);
    state.store(kFinished);
    return true;
  }
  if (!param_PROBE.value() && !readable_python(writer)) {
    state.store(kFinished);
    return true;
  }
  if (!api->is_initialized() || python_ends()) return false;
  int idle = kIdle;
  if (state.compare_exchange_strong(idle, kPosted) && api->add_pending_call(pending, nullptr) != 0) {
    state.store(kIdle);  // the queue is full: next time
  }
  return false;
}

}  // namespace dshang::rank
