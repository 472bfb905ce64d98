#include "phantora/graph.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace phantora::graphs {

Conditional::Conditional(std::shared_ptr<conditions::Condition> condition, Kind kind, size_t bodies)
    : condition(std::move(condition)), kind(kind) {
  for (size_t i = 0; i < bodies; ++i) this->bodies.push_back(std::make_shared<Graph>());
}

Conditional::Conditional(const Conditional& other) : condition(other.condition), kind(other.kind) {
  for (const auto& body : other.bodies) bodies.push_back(body->clone());
}

void** Conditional::lend_bodies() {
  for (const auto& body : bodies) handles_.push_back(lend(body));
  return handles_.data();
}

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

bool Graph::has_conditionals() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const auto& each) { return each->conditional != nullptr; });
}

bool Graph::has_memory() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const auto& each) { return each->memory != nullptr; });
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  copy->prologue = prologue;
  copy->keepsakes = keepsakes;
  copy->conditions = conditions;
  std::unordered_map<const Node*, Node*> copies;
  for (const auto& node : nodes) {
    copy->nodes.push_back(std::make_unique<Node>(*node));
    copies[node.get()] = copy->nodes.back().get();
  }
  for (const auto& node : copy->nodes) {
    node->graph = copy.get();
    if (node->conditional) node->conditional = std::make_shared<const Conditional>(*node->conditional);
    for (Node*& dependency : node->dependencies) dependency = copies.at(dependency);
  }
  return copy;
}

}  // namespace phantora::graphs
