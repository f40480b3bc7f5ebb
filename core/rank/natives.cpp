#include "core/rank/natives.h"

#include "core/rank/allocator_peaks.h"
#include "core/rank/awake.h"
#include "core/rank/context.h"
#include "core/rank/param.h"
#include "core/rank/pyframes.h"
#include "core/rank/python_state.h"
#include "core/rank/python_walk.h"
#include "core/rank/step_listener.h"

namespace dshang::rank {
namespace {

DSHANG_PARAM(bool, NUMERICS, "1", "0|1",
             "the probe looks at losses, norms, loss scales and a few values of parameters, without waiting for them");

using flight::VisitKind;
using flight::Writer;

const PythonApi* py;  // set before any of the functions exists

Object* none() {
  py->inc_ref(py->none);
  return py->none;
}

bool is_text(Object* object) {
  return *reinterpret_cast<Object* const*>(reinterpret_cast<const char*>(object) + 8) == py->text_type;
}

std::uint64_t word(Object* object) {
  std::uint64_t value = py->word(object);
  if (value != UINT64_MAX || !py->err_occurred()) return value;
  py->err_clear();
  return 0;
}

std::int64_t integer(Object* object, std::int64_t otherwise) {
  std::int64_t value = py->integer(object);
  if (value != -1 || !py->err_occurred()) return value;
  py->err_clear();
  return otherwise;
}

std::uint32_t intern_text(const Writer& writer, Object* object) {
  std::intptr_t length = 0;
  const char* text = is_text(object) ? py->text(object, &length) : nullptr;
  if (!text) py->err_clear();
  return text && length > 0 ? writer.string(text, static_cast<std::size_t>(length)) : 0;
}

// Ids carry the waking that they belong to: a forked child has another flight memory.
std::uint64_t tagged(std::uint32_t id) { return id ? std::uint64_t{waking()} << 32 | id : 0; }

std::uint32_t id(Object* object) {
  std::uint64_t value = word(object);
  return value >> 32 == waking() ? static_cast<std::uint32_t>(value) : 0;
}

std::uint32_t id_or_text(const Writer& writer, Object* object) {
  return is_text(object) ? intern_text(writer, object) : id(object);
}

Object* intern(Object*, Object* const* arguments, std::intptr_t count) {
  Writer writer = awake();
  return py->new_integer(writer && count == 1 ? tagged(intern_text(writer, arguments[0])) : 0);
}

Object* visit(Object*, Object* const* arguments, std::intptr_t count) {
  Writer writer = awake();
  if (writer && count == 3) {
    std::int64_t training = integer(arguments[2], 2);
    visit_module(writer, id(arguments[0]), id(arguments[1]),
                 training == 0 || training == 1 ? static_cast<std::uint8_t>(training) : 2, call_site(writer));
  }
  return none();
}

Object* leave(Object*, Object* const*, std::intptr_t) {
  if (Writer writer = awake()) exit_module(writer);
  return none();
}

Object* step(Object*, Object* const* arguments, std::intptr_t count) {
  Writer writer = awake();
  if (writer && count == 1) begin_step(writer, integer(arguments[0], flight::kNoStep), call_site(writer));
  return none();
}

Object* micro_step(Object*, Object* const* arguments, std::intptr_t count) {
  Writer writer = awake();
  if (writer && count == 1) begin_micro_step(writer, static_cast<std::uint32_t>(word(arguments[0])));
  return none();
}

Object* phase_push(Object*, Object* const* arguments, std::intptr_t count) {
  Writer writer = awake();
  if (writer && count == 1) push_phase(writer, id(arguments[0]), call_site(writer));
  return none();
}

Object* phase_pop(Object*, Object* const*, std::intptr_t) {
  if (Writer writer = awake()) pop_phase(writer);
  return none();
}

Object* gather(Object*, Object* const* arguments, std::intptr_t count) {
  Writer writer = awake();
  if (writer && count == 2) announce_gather(writer, word(arguments[0]), id(arguments[1]), call_site(writer));
  return none();
}

Object* note(Object*, Object* const* arguments, std::intptr_t count) {
  Writer writer = awake();
  if (writer && count == 2) {
    std::uint32_t key = intern_text(writer, arguments[0]);
    if (key) writer.fact(key, intern_text(writer, arguments[1]));
  }
  return none();
}

Object* exception(Object*, Object* const* arguments, std::intptr_t count) {
  Writer writer = awake();
  if (writer && count == 5) {
    std::uint32_t file = id_or_text(writer, arguments[2]), function = id_or_text(writer, arguments[3]);
    std::int32_t line = static_cast<std::int32_t>(integer(arguments[4], 0));
    std::uint32_t site = file ? made_site(writer, file, function, line) : call_site(writer);
    record_exception(writer, id_or_text(writer, arguments[0]), id_or_text(writer, arguments[1]), site);
  }
  return none();
}

Object* loop_end(Object*, Object* const* arguments, std::intptr_t count) {
  Writer writer = awake();
  if (writer && count == 1)
    mark(writer, VisitKind::kLoopEnd, intern_text(writer, arguments[0]), call_site(writer));
  return none();
}

Object* trace_mode(Object*, Object* const* arguments, std::intptr_t count) {
  Writer writer = awake();
  if (writer && count == 1) mark(writer, VisitKind::kTraceMode, id(arguments[0]), call_site(writer));
  return none();
}

Object* teardown(Object*, Object* const* arguments, std::intptr_t count) {
  if (Writer writer = awake()) {
    mark(writer, VisitKind::kTeardown, 0, call_site(writer));
    if (count == 1 && integer(arguments[0], 0) != 0) notify_step(flight::kNoStep);  // no other step closes this one
  }
  if (count == 1 && integer(arguments[0], 0) != 0) python_closes();
  return none();
}

Object* memory(Object*, Object* const* arguments, std::intptr_t count) {
  if (awake() && count == 2) give_allocator_peaks(word(arguments[0]), word(arguments[1]));
  return none();
}

Object* memory_phase(Object*, Object* const* arguments, std::intptr_t count) {
  if (awake() && count == 4)
    if (std::uint32_t phase = id(arguments[0]))
      give_phase_peak(phase, word(arguments[1]), word(arguments[2]), word(arguments[3]));
  return none();
}

Object* batch(Object*, Object* const* arguments, std::intptr_t count) {
  std::uint32_t sizes[flight::kBatchSizes] = {};
  for (std::intptr_t i = 0; i < count && i < static_cast<std::intptr_t>(flight::kBatchSizes); ++i)
    sizes[i] = static_cast<std::uint32_t>(word(arguments[i]));
  if (awake()) give_batch(sizes);
  return none();
}

Object* frames(Object*, Object* const*, std::intptr_t) {
  Object* list = py->new_list(0);
  Writer writer = awake();
  const Python* python = writer ? readable_python(writer) : nullptr;
  if (!list || !python) return list;
  std::uintptr_t thread = reinterpret_cast<std::uintptr_t>(python->functions.this_thread());
  if (!thread || !walk_is_trusted(writer, *python, thread)) return list;
  unsigned count = 0;
  walk_frames(OwnMemory{}, python->layout, thread, [&](const FrameAt& at) {
    NamedText name;
    read_name(OwnMemory{}, *python, at, &name);
    name.file[name.file_length] = name.function[name.function_length] = 0;
    Object* row = py->build("(ssi)", name.file, name.function, static_cast<int>(name.line));
    if (!row) {
      py->err_clear();
      return false;
    }
    py->list_append(list, row);
    py->dec_ref(row);
    return ++count < 64;
  });
  return list;
}

Object* own_file(Object*, Object* const* arguments, std::intptr_t count) {
  if (count == 1 && is_text(arguments[0])) {
    py->inc_ref(arguments[0]);
    add_own_file(reinterpret_cast<std::uintptr_t>(arguments[0]));
  }
  return none();
}

MethodDefinition kNative[] = {
    {"intern", intern, kFastCall, nullptr},
    {"visit", visit, kFastCall, nullptr},
    {"exit_module", leave, kFastCall, nullptr},
    {"step", step, kFastCall, nullptr},
    {"micro_step", micro_step, kFastCall, nullptr},
    {"phase_push", phase_push, kFastCall, nullptr},
    {"phase_pop", phase_pop, kFastCall, nullptr},
    {"gather", gather, kFastCall, nullptr},
    {"note", note, kFastCall, nullptr},
    {"exception", exception, kFastCall, nullptr},
    {"loop_end", loop_end, kFastCall, nullptr},
    {"trace_mode", trace_mode, kFastCall, nullptr},
    {"teardown", teardown, kFastCall, nullptr},
    {"memory", memory, kFastCall, nullptr},
    {"memory_phase", memory_phase, kFastCall, nullptr},
    {"batch", batch, kFastCall, nullptr},
};
MethodDefinition kFrames = {"frames", frames, kFastCall, nullptr};
MethodDefinition kOwnFile = {"own_file", own_file, kFastCall, nullptr};

}  // namespace

Object* make_native(const PythonApi& api) {
  py = &api;
  Object* module = api.new_module("dshang_native");
  if (!module) return nullptr;
  for (MethodDefinition& definition : kNative) {
    Object* function = api.new_function(&definition, nullptr, nullptr);
    bool kept = function && api.set_attribute(module, definition.name, function) == 0;
    if (function) api.dec_ref(function);
    if (!kept) {
      api.dec_ref(module);
      return nullptr;
    }
  }
  Object* numerics = api.new_integer(param_NUMERICS.value() ? 1 : 0);
  if (numerics) {
    api.set_attribute(module, "numerics", numerics);
    api.dec_ref(numerics);
  }
  return module;
}

Object* make_frames_function(const PythonApi& api) {
  py = &api;
  return api.new_function(&kFrames, nullptr, nullptr);
}

Object* make_own_file_function(const PythonApi& api) {
  py = &api;
  return api.new_function(&kOwnFile, nullptr, nullptr);
}

}  // namespace dshang::rank
