#include "phantora/graph.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace phantora::graphs {

Node* Graph::add(NodeType type, int device, std::vector<Node*> dependencies) {
  auto node = std::make_unique<Node>();
  node->graph = this;
  node->type = type;
  node->device = device;
  node->dependencies = std::move(dependencies);
  nodes.push_back(std::move(node));
  return nodes.back().get();
}

bool Graph::holds(const Node* node) const {
  return std::any_of(nodes.begin(), nodes.end(), [node](const auto& each) { return each.get() == node; });
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  copy->prologue = prologue;
  copy->keepsakes = keepsakes;
  std::unordered_map<const Node*, Node*> copies;
  for (const auto& node : nodes) {
    copy->nodes.push_back(std::make_unique<Node>(*node));
    copies[node.get()] = copy->nodes.back().get();
  }
  for (const auto& node : copy->nodes) {
    node->graph = copy.get();
    for (Node*& dependency : node->dependencies) dependency = copies.at(dependency);
  }
  return copy;
}

}  // namespace phantora::graphs
