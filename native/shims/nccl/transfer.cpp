#include "nccl/transfer.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "nccl/buffer.h"
#include "nccl/content.h"
#include "nccl/error.h"
#include "phantora/activity.h"
#include "phantora/capture.h"
#include "phantora/config.h"
#include "phantora/exchange.h"
#include "phantora/values.h"

namespace phantora::nccl {
namespace {

// The messages of one launch. The n-th send of a member to another meets the n-th receive of that one from it.
class TransferExchange : public values::Exchange {
 public:
  TransferExchange(CommunicatorPtr communicator, const std::vector<Transfer>& transfers)
      : communicator_(std::move(communicator)), outstanding_(*communicator_) {
    for (const Transfer& transfer : transfers) {
      auto& count = (transfer.sends ? communicator_->sends : communicator_->receives)[transfer.peer];
      numbered_.push_back({transfer, exchange::point_to_point + count++, communicator_->carries(transfer.bytes)});
    }
  }

  void start() override {
    for (const auto& [transfer, sequence, carried] : numbered_) {
      if (!transfer.sends || !carried) continue;
      const Content content = Content::capture(transfer.buffer, transfer.bytes);
      exchange::send({communicator_->number, sequence, me(), static_cast<uint32_t>(transfer.peer), content.known(),
                      content.pack()});
    }
  }

  bool ready() override {
    return communicator_->aborted() || std::all_of(numbered_.begin(), numbered_.end(), [this](const Numbered& item) {
             return item.transfer.sends || !item.carried ||
                    exchange::has(communicator_->number, item.sequence, static_cast<uint32_t>(item.transfer.peer),
                                  me());
           });
  }

  void apply() override {
    for (const auto& [transfer, sequence, carried] : numbered_) {
      if (transfer.sends) continue;
      if (carried && !communicator_->aborted()) {
        receive(transfer, sequence);
      } else {
        values::mark_unknown(transfer.buffer, transfer.bytes);
      }
    }
  }

 private:
  struct Numbered {
    Transfer transfer;
    uint64_t sequence;
    bool carried;
  };

  uint32_t me() const { return static_cast<uint32_t>(communicator_->index); }

  void receive(const Transfer& transfer, uint64_t sequence) const {
    exchange::Message message;
    if (!exchange::take(communicator_->number, sequence, static_cast<uint32_t>(transfer.peer), me(), &message)) {
      return values::mark_unknown(transfer.buffer, transfer.bytes);  // aborted in the meantime
    }
    const Content content = Content::unpack(message.bytes);
    if (content.size() != transfer.bytes) {
      disagree("member " + std::to_string(me()) + " receives " + std::to_string(transfer.bytes) +
                   " bytes from member " + std::to_string(transfer.peer) + ", which sends " +
                   std::to_string(content.size()),
               "ncclSend and ncclRecv must have the same count and data type");
    }
    content.place(transfer.buffer);
  }

  const CommunicatorPtr communicator_;
  const Communicator::Outstanding outstanding_;
  std::vector<Numbered> numbered_;
};

uint32_t definition_of(Communicator& communicator, const std::vector<Transfer>& transfers) {
  size_t sent = 0, received = 0;
  wire::Pack peers;
  peers.array(static_cast<uint32_t>(transfers.size()));
  for (const Transfer& transfer : transfers) {
    (transfer.sends ? sent : received) += transfer.bytes;
    peers.array(3).text(transfer.sends ? "send" : "recv").integer(transfer.peer);
    peers.integer(static_cast<int64_t>(transfer.bytes));
  }
  const auto bytes = static_cast<int64_t>(std::max(sent, received));
  wire::Pack pairs;
  pairs.text("op").text("group").text("count").integer(bytes).text("dtype").text("uint8").text("bytes").integer(bytes);
  pairs.text("peers").raw(peers.str());
  return communicator.definition_of(pairs.str(), 5);
}

}  // namespace

void check(const Communicator& communicator, const Transfer& transfer) {
  check_member(communicator, transfer.peer, "peer");
  check_buffer(communicator, transfer.buffer, transfer.bytes, transfer.sends ? "sendbuff" : "recvbuff");
}

namespace {

// The communicator is locked.
void enqueue(const CommunicatorPtr& communicator, const std::vector<Transfer>& transfers, StreamId stream) {
  communicator->uses(stream);
  {
    activity::Issue issue(stream, "ncclDevKernel_SendRecv");
    recorder::record(wire::RecordKind::collective, stream, definition_of(*communicator, transfers));
  }
  values::submit(stream, std::make_shared<TransferExchange>(communicator, transfers));
}

}  // namespace

void issue(const CommunicatorPtr& communicator, const std::vector<Transfer>& transfers, StreamId stream) {
  recorder::advance(config().launch_ns);
  auto again = [communicator, transfers](StreamId launched) {
    const std::lock_guard lock(communicator->mutex);
    communicator->check_replay();
    enqueue(communicator, transfers, launched);
  };
  if (!captures::add(stream, graphs::NodeType::kernel, again)) enqueue(communicator, transfers, stream);
}

}  // namespace phantora::nccl
