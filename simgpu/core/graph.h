// A CUDA graph: operations with what they need to be done before.
#pragma once

#include <memory>
#include <unordered_set>
#include <vector>

#include "simgpu/core/stream.h"

namespace simgpu {

// Address: the cudaGraphNode_t.
struct GraphNode {
  Operation operation;
  Run run;
  std::vector<GraphNode*> needs;
};

// Address: the cudaGraph_t. Nodes are in an order in which each comes after what it needs, and that is how a
// graph is replayed: one node after the other. Hardware may run independent branches at the same time.
struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;
  std::vector<std::shared_ptr<void>> keeps;  // objects of the program that live as long as the graph does

  GraphNode* add(Operation operation, Run run, std::vector<GraphNode*> needs) {
    nodes.push_back(std::make_unique<GraphNode>(GraphNode{std::move(operation), run, std::move(needs)}));
    return nodes.back().get();
  }

  // The given nodes and everything they need, directly or not.
  static std::unordered_set<const GraphNode*> closure(const std::vector<GraphNode*>& tips) {
    std::unordered_set<const GraphNode*> seen;
    std::vector<const GraphNode*> open(tips.begin(), tips.end());
    while (!open.empty()) {
      const GraphNode* node = open.back();
      open.pop_back();
      if (!seen.insert(node).second) continue;
      open.insert(open.end(), node->needs.begin(), node->needs.end());
    }
    return seen;
  }
};

}  // namespace simgpu
