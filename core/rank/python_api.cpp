#include "core/rank/python_api.h"

#include <string.h>

#include <atomic>

#include "core/rank/base_libc.h"

namespace dshang::rank {
namespace {

PythonApi api;

template <typename Pointer>
bool find(Pointer* pointer, const char* name, const char** missing) {
  *pointer = reinterpret_cast<Pointer>(find_symbol(name));
  if (!*pointer) *missing = name;
  return *pointer != nullptr;
}

bool find_all(const char** missing) {
  return find(&api.add_pending_call, "Py_AddPendingCall", missing) &&
         find(&api.is_initialized, "Py_IsInitialized", missing) && find(&api.inc_ref, "Py_IncRef", missing) &&
         find(&api.dec_ref, "Py_DecRef", missing) && find(&api.err_fetch, "PyErr_Fetch", missing) &&
         find(&api.err_restore, "PyErr_Restore", missing) &&
         find(&api.normalize, "PyErr_NormalizeException", missing) &&
         find(&api.set_traceback, "PyException_SetTraceback", missing) &&
         find(&api.err_occurred, "PyErr_Occurred", missing) && find(&api.err_clear, "PyErr_Clear", missing) &&
         find(&api.str, "PyObject_Str", missing) && find(&api.text, "PyUnicode_AsUTF8AndSize", missing) &&
         find(&api.new_text, "PyUnicode_FromStringAndSize", missing) &&
         find(&api.new_integer, "PyLong_FromUnsignedLongLong", missing) &&
         find(&api.word, "PyLong_AsUnsignedLongLongMask", missing) &&
         find(&api.integer, "PyLong_AsLongLong", missing) && find(&api.new_dict, "PyDict_New", missing) &&
         find(&api.dict_set, "PyDict_SetItemString", missing) &&
         find(&api.dict_get, "PyDict_GetItemString", missing) && find(&api.new_list, "PyList_New", missing) &&
         find(&api.list_append, "PyList_Append", missing) && find(&api.build, "Py_BuildValue", missing) &&
         find(&api.call, "PyObject_CallFunctionObjArgs", missing) &&
         find(&api.is_true, "PyObject_IsTrue", missing) && find(&api.compile, "Py_CompileString", missing) &&
         find(&api.evaluate, "PyEval_EvalCode", missing) &&
         find(&api.builtins, "PyEval_GetBuiltins", missing) &&
         find(&api.modules, "PyImport_GetModuleDict", missing) &&
         find(&api.sys, "PySys_GetObject", missing) && find(&api.new_module, "PyModule_New", missing) &&
         find(&api.set_attribute, "PyObject_SetAttrString", missing) &&
         find(&api.new_function, "PyCFunction_NewEx", missing) &&
         find(&api.none, "_Py_NoneStruct", missing) && find(&api.module_type, "PyModule_Type", missing) &&
         find(&api.text_type, "PyUnicode_Type", missing);
}

// Py_FinalizeEx() of 3.8 closes the queue of pending calls before it runs the exit handlers, and well before
// _Py_IsFinalizing() tells (Python/ceval.c, Include/internal/pycore_ceval.h of that branch; later ones have
// no such flag).  The offset holds on 64-bit machines; what does not look like the queue is not believed.
bool queue_of_3_8_is_closed() {
  static const char* version = nullptr;
  if (!version) {
    auto get = reinterpret_cast<const char* (*)()>(find_symbol("Py_GetVersion"));
    version = get ? get() : "";
  }
  if (strncmp(version, "3.8.", 4) != 0) return false;
  constexpr unsigned kQueue = 600, kCalls = 32;
  struct Queue {
    int finishing;
    void* lock;
    int waiting, async;
    void* calls[kCalls][2];
    int first, last;
  } queue;
  const void* runtime = find_symbol("_PyRuntime");
  if (!runtime) return false;
  memcpy(&queue, static_cast<const char*>(runtime) + kQueue, sizeof queue);
  auto index = [](int value) { return value >= 0 && value < static_cast<int>(kCalls); };
  return queue.finishing == 1 && queue.lock && index(queue.first) && index(queue.last);
}

}  // namespace

bool python_ends() {
  static std::atomic<int (*)()> is_finalizing{nullptr};
  auto function = is_finalizing.load(std::memory_order_relaxed);
  if (!function) {
    void* found = find_symbol("Py_IsFinalizing");
    if (!found) found = find_symbol("_Py_IsFinalizing");
    if (!found) return false;
    function = reinterpret_cast<int (*)()>(found);
    is_finalizing.store(function, std::memory_order_relaxed);
  }
  return function() || queue_of_3_8_is_closed();
}

const PythonApi* python_api(const char** missing) {
  static std::atomic<bool> complete{false};
  if (complete.load(std::memory_order_acquire)) return &api;
  if (!find_all(missing)) return nullptr;
  complete.store(true, std::memory_order_release);
  return &api;
}

}  // namespace dshang::rank
