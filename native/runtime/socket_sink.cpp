#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "phantora/counters.h"
#include "phantora/recorder.h"
#include "sink.h"

namespace phantora {

namespace {

using wire::FrameType;

constexpr uint32_t max_payload_bytes = 16u << 20;

struct FrameHeader {
  uint32_t length;
  FrameType type;
  uint16_t zero;
};
static_assert(sizeof(FrameHeader) == 8);

struct ReplyPayload {
  uint64_t request;
  int64_t value;
  uint32_t flags;
  uint32_t zero;
};
static_assert(sizeof(ReplyPayload) == 24);

struct CorrectionPayload {
  uint64_t request;
  int64_t value;
};

template <typename Payload>
Payload payload_as(std::string_view payload) {
  if (payload.size() != sizeof(Payload)) {
    fail("the simulator sent a frame of " + std::to_string(payload.size()) + " bytes where " +
             std::to_string(sizeof(Payload)) + " belong",
         "the rank and the simulator are of different versions of phantora; reinstall it");
  }
  Payload out;
  std::memcpy(&out, payload.data(), sizeof out);
  return out;
}

int connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    fail("the simulator's socket has too long a name: " + path, "set TMPDIR to a shorter folder");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    fail("cannot reach the simulator at " + path + ": " + std::strerror(errno),
         "it is started by `phantora run` and ends with the job; was this process left over from an earlier one?");
  }
  return fd;
}

class SocketSink : public Sink {
 public:
  SocketSink(const std::string& path, Listener listener) : listener_(std::move(listener)), fd_(connect_to(path)) {
    std::thread([this] { read_frames(); }).detach();
  }

  void send(std::string_view frames) override {
    counters::bytes_sent.add(frames.size());
    while (!frames.empty()) {
      ssize_t n = ::send(fd_, frames.data(), frames.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) lost();
      frames.remove_prefix(static_cast<size_t>(n));
    }
  }

  void ask(std::string_view frames, const Question&) override { send(frames); }

  void close() override { closing_ = true; }

 private:
  void lost() {
    // After BYE the simulator may be gone first. The thread waits for the process, which is about to end.
    while (closing_) pause();
    fail("the simulator has ended", "its own message, above or in the job's log, says why");
  }

  void read_exactly(char* to, size_t bytes) {
    while (bytes > 0) {
      ssize_t n = recv(fd_, to, bytes, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) lost();
      to += n;
      bytes -= static_cast<size_t>(n);
    }
  }

  void read_frames() {
    pthread_setname_np(pthread_self(), "phantora_read");
    recorder::become_observer();
    std::string payload;
    for (;;) {
      FrameHeader header;
      read_exactly(reinterpret_cast<char*>(&header), sizeof header);
      if (header.length > max_payload_bytes) {
        fail("the simulator sent a frame of " + std::to_string(header.length) + " bytes",
             "the rank and the simulator are of different versions of phantora; reinstall it");
      }
      payload.resize(header.length);
      read_exactly(payload.data(), payload.size());
      dispatch(header.type, payload);
    }
  }

  void dispatch(FrameType type, std::string_view payload) {
    switch (type) {
      case FrameType::reply: {
        auto reply = payload_as<ReplyPayload>(payload);
        listener_.reply(reply.request, reply.value, reply.flags & 1);
        return;
      }
      case FrameType::correction: {
        auto correction = payload_as<CorrectionPayload>(payload);
        listener_.correction(correction.request, correction.value);
        return;
      }
      case FrameType::data:
        listener_.data(payload);
        return;
      case FrameType::abort:
        if (payload.empty()) end_without_a_word();
        fail(std::string(payload), "the job's log has more; this rank ended because the job cannot go on");
      default:
        fail("the simulator sent a frame of unknown type " + std::to_string(static_cast<int>(type)),
             "the rank and the simulator are of different versions of phantora; reinstall it");
    }
  }

  Listener listener_;
  int fd_;
  std::atomic<bool> closing_{false};
};

}  // namespace

std::unique_ptr<Sink> open_socket_sink(const std::string& path, Listener listener) {
  return std::make_unique<SocketSink>(path, std::move(listener));
}

}  // namespace phantora
