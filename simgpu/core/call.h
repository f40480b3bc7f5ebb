// What every exported function does first and last: it is named at its first call (SIMGPU_LOG=1), and no
// exception leaves it.
#pragma once

#include <atomic>
#include <new>
#include <utility>

#include "simgpu/core/abi.h"
#include "simgpu/core/context.h"
#include "simgpu/core/log.h"

namespace simgpu {

// Runs `body`; an exception becomes `on_throw`. Every exported function has a body, and so a flag, of its
// own.
template <class Result, class Body>
Result guarded(const char* name, Result on_throw, Body&& body) noexcept {
  static std::atomic<bool> called{false};
  if (!called.load(std::memory_order_relaxed) && !called.exchange(true)) note_first_call(name);
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    return on_throw;
  }
}

// A function of the CUDA runtime that needs no device (versions, names, attributes of the call itself): its
// error is kept as the thread's last error.
template <class Body>
Error runtime_plain(const char* name, Body&& body) noexcept {
  return keep_error(guarded(name, kUnknownError, std::forward<Body>(body)));
}

// A function of the CUDA runtime that asks about devices. In a child forked after CUDA was in use: error 3.
template <class Body>
Error runtime_query(const char* name, Body&& body) noexcept {
  return keep_error(guarded(name, kUnknownError, [&]() -> Error {
    if (Error error = start()) return error;
    return body();
  }));
}

// A function of the CUDA runtime that works on the current device: its primary context becomes active, and a
// fault of the device is returned instead of a result.
template <class Body>
Error runtime_call(const char* name, Body&& body) noexcept {
  return keep_error(guarded(name, kOutOfMemory, [&]() -> Error {
    if (Error error = enter_device()) return error;
    return body();
  }));
}

// A function of the driver that asks about devices; error 3 before cuInit (or a call of the runtime, which
// does that). The driver never touches the runtime's last error.
template <class Body>
Error driver_query(const char* name, Body&& body) noexcept {
  return guarded(name, kUnknownError, [&]() -> Error {
    if (Error error = require_start()) return error;
    return body();
  });
}

// A function of the driver that works in the thread's current context: without one, error 201.
template <class Body>
Error driver_call(const char* name, Body&& body) noexcept {
  return guarded(name, kOutOfMemory, [&]() -> Error {
    if (Error error = require_context()) return error;
    return body();
  });
}

}  // namespace simgpu
