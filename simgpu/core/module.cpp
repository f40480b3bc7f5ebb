#include "simgpu/core/module.h"

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "simgpu/core/registry.h"

namespace simgpu {
namespace {

struct Module {
  std::mutex mutex;
  std::set<std::string> kernels;  // a kernel's handle is the address of its name
};

Registry<Module>& modules() {
  static Registry<Module>* const kModules = new Registry<Module>;
  return *kModules;
}

}  // namespace

void* load_module() { return modules().add(std::make_shared<Module>()); }

Error unload_module(void* module) { return modules().remove(module) != nullptr ? kSuccess : kInvalidHandle; }

Error module_kernel(void* module_handle, const char* name, void** kernel) {
  const std::shared_ptr<Module> module = modules().find(module_handle);
  if (module == nullptr || name == nullptr) return kInvalidHandle;
  std::lock_guard<std::mutex> lock(module->mutex);
  *kernel = const_cast<char*>(module->kernels.insert(name).first->c_str());
  return kSuccess;
}

const char* kernel_name(const void* kernel) { return static_cast<const char*>(kernel); }

}  // namespace simgpu
