#include "nccl/collective.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "nccl/buffer.h"
#include "nccl/content.h"
#include "nccl/error.h"
#include "nccl/reduction.h"
#include "phantora/activity.h"
#include "phantora/capture.h"
#include "phantora/config.h"
#include "phantora/exchange.h"
#include "phantora/values.h"

namespace phantora::nccl {
namespace {

// A buffer holds one block of `count` elements, or one for each member. All values go through one member, the hub (the
// root, or member 0): senders give it their buffers, and it returns to each receiver its part:
//   reduces:  the reduction of all buffers; of it the member's block, if senders hold one for each member
//   else:     the senders' buffers one after another; of each the member's block, if senders hold one for each member
struct Shape {
  std::string_view name;
  bool send_blocks;     // senders hold a block for each member
  bool receive_blocks;  // receivers get a block from each member
  bool all_send;        // else the root alone
  bool all_receive;     // else the root alone
  bool reduces;
};

constexpr std::array<Shape, 8> shapes = {{
    {"all_reduce", false, false, true, true, true},
    {"all_gather", false, true, true, true, false},
    {"reduce_scatter", true, false, true, true, true},
    {"broadcast", false, false, false, true, false},
    {"reduce", false, false, true, false, true},
    {"gather", false, true, true, false, false},
    {"scatter", true, false, false, true, false},
    {"all_to_all", true, true, true, true, false},
}};

const Shape& shape_of(const Collective& collective) { return shapes[static_cast<size_t>(collective.kind)]; }

bool rooted(const Shape& shape) { return !shape.all_send || !shape.all_receive; }

// The sizes, in bytes, that follow from a collective on a communicator.
struct Sizes {
  Sizes(const Communicator& communicator, const Collective& collective)
      : block(collective.count * element_bytes(collective.type)),
        send(block * (shape_of(collective).send_blocks ? static_cast<size_t>(communicator.size) : 1)),
        receive(block * (shape_of(collective).receive_blocks ? static_cast<size_t>(communicator.size) : 1)) {}
  size_t whole() const { return std::max(send, receive); }

  size_t block;
  size_t send;
  size_t receive;
};

// This member's part in one operation, fixed when it is issued.
struct Role {
  Role(const Communicator& communicator, const Collective& collective)
      : hub(rooted(shape_of(collective)) ? collective.root : 0),
        is_hub(communicator.index == hub),
        sends(shape_of(collective).all_send || is_hub),
        receives(shape_of(collective).all_receive || is_hub) {}

  int hub;
  bool is_hub;
  bool sends;
  bool receives;
};

// What a sender's values are multiplied with before they are summed up: nothing, 1/n, or a custom operation's scalar.
struct Prescale {
  bool used = false;
  const void* device_scalar = nullptr;
  uint64_t scalar = 0;
};

Prescale prescale_of(const Communicator& communicator, const Collective& collective) {
  Prescale prescale;
  if (!shape_of(collective).reduces) return prescale;
  if (collective.redop == RedOp::average && is_floating_point(collective.type)) {
    prescale.used = true;
    store_reciprocal(collective.type, communicator.size, &prescale.scalar);
  } else if (collective.redop >= RedOp::custom) {
    const auto& custom =
        communicator.custom[static_cast<size_t>(collective.redop) - static_cast<size_t>(RedOp::custom)];
    prescale = {true, custom->device_scalar, custom->scalar};
  }
  return prescale;
}

std::string describe(const Collective& collective) {
  std::string text = std::string(shape_of(collective).name) + " of " + std::to_string(collective.count) + " " +
                     std::string(name(collective.type));
  if (shape_of(collective).reduces) text.append(" ").append(name(collective.redop));
  if (rooted(shape_of(collective))) text.append(" root ").append(std::to_string(collective.root));
  return text;
}

// The messages of one operation. They carry its description, so that members that disagree are told.
class CollectiveExchange : public values::Exchange {
 public:
  CollectiveExchange(CommunicatorPtr communicator, const Collective& collective)
      : communicator_(std::move(communicator)),
        outstanding_(*communicator_),
        collective_(collective),
        shape_(shape_of(collective)),
        sizes_(*communicator_, collective),
        role_(*communicator_, collective),
        prescale_(prescale_of(*communicator_, collective)),
        description_(describe(collective)),
        sequence_(exchange::collective + communicator_->collectives) {}

  void start() override {
    if (!role_.sends) return;
    Content mine = contribution();
    if (role_.is_hub) {
      mine_ = std::move(mine);
    } else {
      send(static_cast<uint32_t>(role_.hub), mine);
    }
  }

  bool ready() override {
    if (communicator_->aborted()) return true;
    if (!role_.is_hub) return !role_.receives || has(role_.hub);
    if (!shape_.all_send) return true;
    for (int member = 0; member < communicator_->size; ++member) {
      if (member != role_.hub && !has(member)) return false;
    }
    return true;
  }

  void apply() override {
    if (communicator_->aborted()) {
      if (role_.receives) values::mark_unknown(collective_.receive, sizes_.receive);
    } else if (role_.is_hub) {
      distribute(gather());
    } else if (role_.receives) {
      receive(role_.hub, sizes_.receive).place(collective_.receive);
    }
  }

 private:
  Content contribution() const {
    Content mine = Content::capture(collective_.send, sizes_.send);
    if (!prescale_.used) return mine;
    const void* scalar = prescale_.device_scalar == nullptr ? &prescale_.scalar : prescale_.device_scalar;
    const bool known = prescale_.device_scalar == nullptr ||
                       values::state(scalar, element_bytes(collective_.type)) == values::State::known;
    scale(collective_.type, mine.materialise(), known ? scalar : &prescale_.scalar, elements());
    if (!known) mine.taint();
    return mine;
  }

  // What every sender gave, by member; or the reduction of it.
  std::vector<Content> gather() {
    std::vector<Content> given;
    for (int member = 0; member < communicator_->size; ++member) {
      if (member == role_.hub) {
        given.push_back(std::move(mine_));
      } else if (shape_.all_send) {
        given.push_back(receive(member, sizes_.send));
      }
    }
    if (shape_.reduces) return {reduce(std::move(given))};
    return given;
  }

  Content reduce(std::vector<Content> given) const {
    Content total = std::move(given[0]);
    for (size_t member = 1; member < given.size(); ++member) {
      total.blend_states(given[member], element_bytes(collective_.type));
      accumulate(collective_.type, collective_.redop, total.materialise(), given[member].materialise(), elements());
    }
    if (collective_.redop == RedOp::average)
      divide(collective_.type, total.materialise(), communicator_->size, elements());
    return total;
  }

  void distribute(const std::vector<Content>& sources) {
    const bool same_for_all = !shape_.send_blocks;
    if (shape_.all_receive && same_for_all) send(exchange::everyone, part(sources, 0));
    for (int member = 0; member < communicator_->size && shape_.all_receive && !same_for_all; ++member) {
      if (member != role_.hub) send(static_cast<uint32_t>(member), part(sources, member));
    }
    part(sources, role_.hub).place(collective_.receive);
  }

  Content part(const std::vector<Content>& sources, int member) const {
    Content result;
    for (const Content& source : sources) {
      result.append(shape_.send_blocks ? source.slice(static_cast<size_t>(member) * sizes_.block, sizes_.block)
                                       : source);
    }
    return result;
  }

  size_t elements() const { return sizes_.send / element_bytes(collective_.type); }
  uint32_t me() const { return static_cast<uint32_t>(communicator_->index); }

  bool has(int member) const {
    return exchange::has(communicator_->number, sequence_, static_cast<uint32_t>(member), me());
  }

  void send(uint32_t member, const Content& content) const {
    exchange::Message message{communicator_->number, sequence_, me(), member, content.known(), {}};
    message.bytes = description_ + '\0' + content.pack();
    exchange::send(std::move(message));
  }

  // `bytes` of nothing if the communicator was aborted in the meantime.
  Content receive(int member, size_t bytes) const {
    exchange::Message message;
    if (!exchange::take(communicator_->number, sequence_, static_cast<uint32_t>(member), me(), &message)) {
      return Content::unknown(bytes);
    }
    const size_t end = std::min(message.bytes.find('\0'), message.bytes.size());
    if (std::string_view(message.bytes).substr(0, end) != description_) {
      disagree("members of a communicator disagree: member " + std::to_string(me()) + " calls " + description_ +
                   ", member " + std::to_string(member) + " calls " + message.bytes.substr(0, end),
               "all ranks must call the same collectives in the same order");
    }
    return Content::unpack(std::string_view(message.bytes).substr(end + 1));
  }

  const CommunicatorPtr communicator_;
  const Communicator::Outstanding outstanding_;
  const Collective collective_;
  const Shape& shape_;
  const Sizes sizes_;
  const Role role_;
  const Prescale prescale_;
  const std::string description_;
  const uint64_t sequence_;
  Content mine_;
};

// Packed pairs of a map.
struct Pairs {
  uint32_t count;
  wire::Pack packed;
};

Pairs pairs_of(const Communicator& communicator, const Collective& collective) {
  const Shape& shape = shape_of(collective);
  Pairs pairs{4, {}};
  pairs.packed.text("op").text(shape.name).text("count").integer(static_cast<int64_t>(collective.count));
  pairs.packed.text("dtype").text(name(collective.type));
  pairs.packed.text("bytes").integer(static_cast<int64_t>(Sizes(communicator, collective).whole()));
  if (shape.reduces) ++pairs.count, pairs.packed.text("redop").text(name(collective.redop));
  if (rooted(shape)) ++pairs.count, pairs.packed.text("root").integer(collective.root);
  return pairs;
}

uint32_t definition_of(Communicator& communicator, const std::vector<Collective>& collectives) {
  if (collectives.size() == 1) {
    const auto [count, packed] = pairs_of(communicator, collectives.front());
    return communicator.definition_of(packed.str(), count);
  }
  wire::Pack pairs;
  pairs.text("op").text("several").text("parts").array(static_cast<uint32_t>(collectives.size()));
  for (const Collective& collective : collectives) {
    const auto [count, packed] = pairs_of(communicator, collective);
    pairs.map(count).raw(packed.str());
  }
  return communicator.definition_of(pairs.str(), 2);
}

// As the profiler shows it; NCCL's own names say the algorithm too, which the rank does not know.
std::string device_name(const Collective& collective) {
  const Shape& shape = shape_of(collective);
  std::string text = "ncclDevKernel_" + std::string(shape.name);
  if (shape.reduces) text += "_" + std::string(name(collective.redop));
  return text + "_" + std::string(name(collective.type));
}

void check_reduction(const Communicator& communicator, const Collective& collective) {
  const int op = static_cast<int>(collective.redop), first = static_cast<int>(RedOp::custom);
  if (op < 0 || op - first >= static_cast<int>(communicator.custom.size())) {
    reject("reduction operation " + std::to_string(op) + " is none");
  }
  if (op < first) return;
  const auto& custom = communicator.custom[static_cast<size_t>(op - first)];
  if (!custom) reject("reduction operation " + std::to_string(op) + " was destroyed");
  if (custom->type != collective.type) reject("the reduction operation was made for another data type");
}

}  // namespace

void check(const Communicator& communicator, const Collective& collective) {
  const Shape& shape = shape_of(collective);
  check_type(collective.type);
  if (shape.reduces) check_reduction(communicator, collective);
  if (rooted(shape)) check_member(communicator, collective.root, "root");
  const Sizes sizes(communicator, collective);
  const Role role(communicator, collective);
  if (role.sends) check_buffer(communicator, collective.send, sizes.send, "sendbuff");
  if (role.receives) check_buffer(communicator, collective.receive, sizes.receive, "recvbuff");
}

void issue_barrier(Communicator& communicator, StreamId stream) {
  const Collective barrier{.kind = CollectiveKind::all_reduce, .count = 1, .type = DataType::uint8};
  recorder::record(wire::RecordKind::collective, stream, definition_of(communicator, {barrier}));
}

namespace {

void submit(const CommunicatorPtr& communicator, const Collective& collective, StreamId stream) {
  const Sizes sizes(*communicator, collective);
  if (communicator->carries(sizes.whole())) {
    values::submit(stream, std::make_shared<CollectiveExchange>(communicator, collective));
  } else if (Role(*communicator, collective).receives) {
    values::submit(stream, [to = collective.receive, bytes = sizes.receive] { values::mark_unknown(to, bytes); });
  }
  ++communicator->collectives;
}

// The communicator is locked.
void enqueue(const CommunicatorPtr& communicator, const std::vector<Collective>& collectives, StreamId stream) {
  communicator->uses(stream);
  {
    activity::Issue issue(stream, activity::is_on() ? device_name(collectives.front()) : std::string());
    recorder::record(wire::RecordKind::collective, stream, definition_of(*communicator, collectives));
  }
  for (const Collective& collective : collectives) submit(communicator, collective, stream);
}

}  // namespace

void issue(const CommunicatorPtr& communicator, const std::vector<Collective>& collectives, StreamId stream) {
  recorder::advance(config().launch_ns);
  auto again = [communicator, collectives](StreamId launched) {
    const std::lock_guard lock(communicator->mutex);
    communicator->check_replay();
    enqueue(communicator, collectives, launched);
  };
  if (!captures::add(stream, graphs::NodeType::kernel, again)) enqueue(communicator, collectives, stream);
}

}  // namespace phantora::nccl
