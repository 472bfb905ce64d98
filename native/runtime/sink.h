// Where a rank's frames go, and who answers its requests.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "phantora/wire.h"

namespace phantora {

// A request, with what the rank can say about it by itself.
struct Question {
  uint64_t request = 0;
  wire::RecordKind kind = wire::RecordKind::sync;
  int64_t lane_ns = 0;    // the lane's clock
  int64_t issued_ns = 0;  // EVENT_TIME: when the recording was issued
};

// Called from any thread, without locks of the sink.
struct Listener {
  std::function<void(uint64_t request, int64_t value, bool speculated)> reply;
  std::function<void(uint64_t request, int64_t value)> correction;
  std::function<void(std::string_view payload)> data;
};

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void send(std::string_view frames) = 0;
  // Sends frames whose last record is the request, or nothing if it has been sent; listener.reply follows, perhaps
  // before ask() returns.
  virtual void ask(std::string_view frames, const Question& question) = 0;
  virtual void close() = 0;  // the rank has said BYE; the other side may go now
};

// $PHANTORA_RUN_DIR/sim.sock. Losing the simulator ends the process.
std::unique_ptr<Sink> open_socket_sink(const std::string& path, Listener listener);
// No simulator: requests are answered at once, as if everything took no time on the device.
std::unique_ptr<Sink> open_null_sink(Listener listener);

}  // namespace phantora
