// Graphs: instantiation and replay.
#include "simgpu/core/graph.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "simgpu/core/call.h"
#include "simgpu/core/registry.h"

using namespace simgpu;

namespace {

// Address: the cudaGraphExec_t. It owns copies of the operations: the graph may be destroyed before it.
struct ExecutableGraph {
  std::vector<Operation> operations;
  std::vector<std::shared_ptr<void>> keeps;
  Run run = Run::kInlineIfIdle;
};

Registry<ExecutableGraph>& executables() {
  static Registry<ExecutableGraph>* const kExecutables = new Registry<ExecutableGraph>;
  return *kExecutables;
}

// Address: the cudaUserObject_t. Something of the program's that a graph keeps alive.
struct UserObject {
  void* data;
  void (*destroy)(void*);
  std::atomic<int> references;

  void release(int count) {
    if (references.fetch_sub(count) > count) return;
    destroy(data);
    delete this;
  }
};

Error instantiate(void** executable, const Graph* graph) {
  if (executable == nullptr || graph == nullptr) return kInvalidValue;
  auto result = std::make_shared<ExecutableGraph>();
  for (const auto& node : graph->nodes) {
    result->operations.push_back(node->operation);
    if (node->run == Run::kOnWorker) result->run = Run::kOnWorker;
  }
  result->keeps = graph->keeps;
  *executable = executables().add(std::move(result));
  return kSuccess;
}

}  // namespace

SIMGPU_API Error cudaGraphCreate(void** graph, unsigned) {
  return runtime_query(__func__, [&]() -> Error {
    *graph = new Graph;
    return kSuccess;
  });
}

SIMGPU_API Error cudaGraphDestroy(void* graph) {
  return runtime_query(__func__, [&]() -> Error {
    delete static_cast<Graph*>(graph);
    return kSuccess;
  });
}

SIMGPU_API Error cudaGraphInstantiate(void** executable, void* graph, unsigned long long) {
  return runtime_call(__func__,
                      [&]() -> Error { return instantiate(executable, static_cast<Graph*>(graph)); });
}

SIMGPU_API Error cudaGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  return runtime_call(__func__,
                      [&]() -> Error { return instantiate(executable, static_cast<Graph*>(graph)); });
}

SIMGPU_API Error cudaGraphExecDestroy(void* executable) {
  return runtime_query(__func__, [&]() -> Error {
    return executables().remove(executable) != nullptr ? kSuccess : kInvalidValue;
  });
}

SIMGPU_API Error cudaGraphUpload(void* executable, void*) {
  return runtime_call(__func__, [&]() -> Error {
    return executables().find(executable) != nullptr ? kSuccess : kInvalidValue;
  });
}

SIMGPU_API Error cudaGraphLaunch(void* executable, void* stream) {
  return runtime_call(__func__, [&]() -> Error {
    const std::shared_ptr<ExecutableGraph> graph = executables().find(executable);
    if (graph == nullptr) return kInvalidValue;
    return enqueue(
        stream,
        [graph] {
          for (const Operation& operation : graph->operations) operation();
        },
        graph->run);
  });
}

// --- looking into a graph ------------------------------------------------------------------------

SIMGPU_API Error cudaGraphGetNodes(void* handle, void** nodes, size_t* count) {
  return runtime_query(__func__, [&]() -> Error {
    if (handle == nullptr || count == nullptr) return kInvalidValue;
    const Graph& graph = *static_cast<Graph*>(handle);
    if (nodes == nullptr) {
      *count = graph.nodes.size();
      return kSuccess;
    }
    for (size_t i = 0; i < *count; ++i) nodes[i] = i < graph.nodes.size() ? graph.nodes[i].get() : nullptr;
    *count = std::min(*count, graph.nodes.size());
    return kSuccess;
  });
}

SIMGPU_API Error cudaGraphNodeGetDependencies(void* handle, void** nodes, void*, size_t* count) {
  return runtime_query(__func__, [&]() -> Error {
    if (handle == nullptr || count == nullptr) return kInvalidValue;
    const GraphNode& node = *static_cast<GraphNode*>(handle);
    if (nodes == nullptr) {
      *count = node.needs.size();
      return kSuccess;
    }
    for (size_t i = 0; i < *count; ++i) nodes[i] = i < node.needs.size() ? node.needs[i] : nullptr;
    *count = std::min(*count, node.needs.size());
    return kSuccess;
  });
}

// --- objects of the program that live as long as a graph -----------------------------------------

SIMGPU_API Error cudaUserObjectCreate(void** object, void* data, void (*destroy)(void*), unsigned references,
                                      unsigned) {
  return runtime_query(__func__, [&]() -> Error {
    if (object == nullptr || destroy == nullptr || references == 0) return kInvalidValue;
    *object = new UserObject{data, destroy, static_cast<int>(references)};
    return kSuccess;
  });
}

SIMGPU_API Error cudaUserObjectRelease(void* object, unsigned count) {
  return runtime_query(__func__, [&]() -> Error {
    if (object == nullptr || count == 0) return kInvalidValue;
    static_cast<UserObject*>(object)->release(static_cast<int>(count));
    return kSuccess;
  });
}

SIMGPU_API Error cudaGraphRetainUserObject(void* graph, void* object, unsigned count, unsigned flags) {
  return runtime_query(__func__, [&]() -> Error {
    constexpr unsigned kMove = 1;  // cudaGraphUserObjectMove: the caller's references become the graph's
    if (graph == nullptr || object == nullptr || count == 0) return kInvalidValue;
    UserObject* user = static_cast<UserObject*>(object);
    if ((flags & kMove) == 0) user->references.fetch_add(static_cast<int>(count));
    std::shared_ptr<void> kept(user, [count](void* released) {
      static_cast<UserObject*>(released)->release(static_cast<int>(count));
    });
    static_cast<Graph*>(graph)->keeps.push_back(std::move(kept));
    return kSuccess;
  });
}
