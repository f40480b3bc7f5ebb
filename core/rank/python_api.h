// The functions of the interpreter that arming and the probe's native side call, found by name.
//
// All of them are exported by every CPython from 3.8 on (the stable ABI, where it has them).  They may be
// called with the GIL held only, except add_pending_call.
#pragma once

#include <cstdint>

namespace dshang::rank {

struct Object;  // PyObject

using FastFunction = Object* (*)(Object* self, Object* const* arguments, std::intptr_t count);

// PyMethodDef.
struct MethodDefinition {
  const char* name;
  FastFunction function;
  int flags;
  const char* text;
};
inline constexpr int kFastCall = 0x0080;  // METH_FASTCALL
inline constexpr int kFileInput = 257;    // Py_file_input

struct PythonApi {
  int (*add_pending_call)(int (*)(void*), void*);
  int (*is_initialized)();
  void (*inc_ref)(Object*);
  void (*dec_ref)(Object*);
  void (*err_fetch)(Object**, Object**, Object**);
  void (*err_restore)(Object*, Object*, Object*);
  void (*normalize)(Object**, Object**, Object**);  // PyErr_NormalizeException
  int (*set_traceback)(Object*, Object*);           // PyException_SetTraceback
  Object* (*err_occurred)();
  void (*err_clear)();
  Object* (*str)(Object*);
  const char* (*text)(Object*, std::intptr_t*);     // PyUnicode_AsUTF8AndSize
  Object* (*new_text)(const char*, std::intptr_t);  // PyUnicode_FromStringAndSize
  Object* (*new_integer)(unsigned long long);       // PyLong_FromUnsignedLongLong
  unsigned long long (*word)(Object*);              // PyLong_AsUnsignedLongLongMask
  long long (*integer)(Object*);                    // PyLong_AsLongLong
  Object* (*new_dict)();
  int (*dict_set)(Object*, const char*, Object*);  // PyDict_SetItemString
  Object* (*dict_get)(Object*, const char*);       // PyDict_GetItemString, borrowed
  Object* (*new_list)(std::intptr_t);
  int (*list_append)(Object*, Object*);
  Object* (*build)(const char*, ...);  // Py_BuildValue
  Object* (*call)(Object*, ...);       // PyObject_CallFunctionObjArgs
  int (*is_true)(Object*);
  Object* (*compile)(const char*, const char*, int);  // Py_CompileString
  Object* (*evaluate)(Object*, Object*, Object*);     // PyEval_EvalCode
  Object* (*builtins)();                              // PyEval_GetBuiltins, borrowed
  Object* (*modules)();                               // PyImport_GetModuleDict, borrowed
  Object* (*sys)(const char*);                        // PySys_GetObject, borrowed, or null
  Object* (*new_module)(const char*);
  int (*set_attribute)(Object*, const char*, Object*);
  Object* (*new_function)(MethodDefinition*, Object*, Object*);  // PyCFunction_NewEx
  Object* none;
  Object* module_type;
  Object* text_type;
};

// Null = not found yet, or this interpreter lacks one of them (`*missing` then names it).
const PythonApi* python_api(const char** missing);

// Whether the interpreter is on its way out: nothing is to be posted to it any more (3.8 answers a pending
// call with an error that it prints, or, on a thread without a state, with a crash), and what fails in it is
// no news. Any thread, with or without the GIL.
bool python_ends();

}  // namespace dshang::rank
