// The op that owns what is launched while it is open.
#pragma once
#include "capture.h"
#include "phantora/launch.h"

namespace phantora::aten {

class Scope : public OpScope {
 public:
  Scope(const Operator& op, const Capture& capture) : op_(op), capture_(capture) {
    hash = capture.hash();
    pairs = Capture::description_pairs;
    describe = &Scope::describe_op;
    name = op.name.c_str();
    push_op(this);
  }

  ~Scope() {
    pop_op(this);
    if (!outer || launched() == 0) return;
    outer->stream = stream;
    if (auto* enclosing = enclosing_scope()) enclosing->inner_launches_ += launched();
  }

  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // Something ran on the device that neither an inner op nor values::copy and set account for.
  bool has_effect() const { return launches > carried; }
  uint32_t launched() const { return launches + inner_launches_; }  // by this op and those within

 private:
  static void describe_op(const OpScope* scope, wire::Pack& pack) {
    auto* self = static_cast<const Scope*>(scope);
    self->capture_.describe(self->op_, pack);
  }

  Scope* enclosing_scope() const {
    return outer->describe == &Scope::describe_op ? static_cast<Scope*>(outer) : nullptr;
  }

  const Operator& op_;
  const Capture& capture_;
  uint32_t inner_launches_ = 0;
};

}  // namespace phantora::aten
