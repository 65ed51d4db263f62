// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>

#include "shared/base/check.h"

namespace pnfsrdma::mds {

// Ranges of bytes (both ends belong to them), each of a holder, found by what they overlap: a balanced tree
// (AVL) in the order of beginnings, in which each node knows the furthest end below it. Insert and erase are
// O(log n), visit O(log n) for each answer. The ranges of one holder begin at different bytes. A value.
template <typename Holder>
class RangeIndex {
 public:
  void insert(uint64_t first, uint64_t last, Holder holder) {
    insert(root_,
           std::make_unique<Node>(Node{.first = first, .last = last, .furthest = last, .holder = holder}));
  }
  // It is there.
  void erase(uint64_t first, Holder holder) { erase(root_, {first, holder}); }
  bool empty() const { return root_ == nullptr; }

  // Calls visitor(holder, first, last) for all that overlap, in the order of their beginnings, until it says
  // false.
  template <typename Visitor>
  void visit(uint64_t first, uint64_t last, Visitor&& visitor) const {
    visit(root_.get(), first, last, visitor);
  }

 private:
  struct Node;
  using Link = std::unique_ptr<Node>;
  using Key = std::pair<uint64_t, Holder>;
  struct Node {
    uint64_t first = 0;
    uint64_t last = 0;
    uint64_t furthest = 0;
    Holder holder{};
    int height = 1;
    Link left = nullptr;
    Link right = nullptr;
    Key key() const { return {first, holder}; }
  };

  static int height(const Link& node) { return node ? node->height : 0; }

  static void count(Node& node) {
    node.height = 1 + std::max(height(node.left), height(node.right));
    node.furthest = node.last;
    if (node.left) node.furthest = std::max(node.furthest, node.left->furthest);
    if (node.right) node.furthest = std::max(node.furthest, node.right->furthest);
  }
  // `up` is a child of `node` and takes its place.
  static void rotate(Link& node, Link Node::* up, Link Node::* other) {
    Link raised = std::move((*node).*up);
    (*node).*up = std::move((*raised).*other);
    count(*node);
    (*raised).*other = std::move(node);
    node = std::move(raised);
    count(*node);
  }
  static void balance(Link& node) {
    count(*node);
    const int lean = height(node->left) - height(node->right);
    if (lean > 1) {
      if (height(node->left->left) < height(node->left->right)) rotate(node->left, &Node::right, &Node::left);
      rotate(node, &Node::left, &Node::right);
    } else if (lean < -1) {
      if (height(node->right->right) < height(node->right->left))
        rotate(node->right, &Node::left, &Node::right);
      rotate(node, &Node::right, &Node::left);
    }
  }

  static void insert(Link& node, Link added) {
    if (!node) {
      node = std::move(added);
      return;
    }
    CHECK(added->key() != node->key());
    Link& below = added->key() < node->key() ? node->left : node->right;
    insert(below, std::move(added));
    balance(node);
  }

  static void erase(Link& node, const Key& key) {
    CHECK(node != nullptr);
    if (key != node->key()) {
      erase(key < node->key() ? node->left : node->right, key);
    } else if (!node->left || !node->right) {
      node = std::move(node->left ? node->left : node->right);
    } else {
      Link next = take_first(node->right);
      next->left = std::move(node->left);
      next->right = std::move(node->right);
      node = std::move(next);
    }
    if (node) balance(node);
  }
  static Link take_first(Link& node) {
    if (!node->left) {
      Link taken = std::move(node);
      node = std::move(taken->right);
      return taken;
    }
    Link taken = take_first(node->left);
    balance(node);
    return taken;
  }

  template <typename Visitor>
  static bool visit(const Node* node, uint64_t first, uint64_t last, Visitor& visitor) {
    if (node == nullptr || node->furthest < first) return true;
    if (!visit(node->left.get(), first, last, visitor)) return false;
    if (node->first > last) return true;
    if (node->last >= first && !visitor(node->holder, node->first, node->last)) return false;
    return visit(node->right.get(), first, last, visitor);
  }

  Link root_;
};

}  // namespace pnfsrdma::mds
