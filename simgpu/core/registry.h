// Handles that were given out and are still valid. A handle is the address of its object; the object lives as
// long as an operation in flight still holds it, also after its handle was destroyed.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace simgpu {

template <class Object>
class Registry {
 public:
  void* add(std::shared_ptr<Object> object) {
    void* handle = object.get();
    std::unique_lock<std::shared_mutex> lock(mutex_);
    objects_.emplace(handle, std::move(object));
    return handle;
  }

  // nullptr: not a handle, or destroyed.
  std::shared_ptr<Object> find(const void* handle) const {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    auto found = objects_.find(handle);
    return found != objects_.end() ? found->second : nullptr;
  }

  std::shared_ptr<Object> remove(const void* handle) {
    std::unique_lock<std::shared_mutex> lock(mutex_);
    auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<Object> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

  std::vector<std::shared_ptr<Object>> all() const {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    std::vector<std::shared_ptr<Object>> result;
    result.reserve(objects_.size());
    for (const auto& entry : objects_) result.push_back(entry.second);
    return result;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<Object>> objects_;
};

}  // namespace simgpu
