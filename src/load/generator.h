// The loop of the load generator: one thread, one epoll set. It sends at absolute times, stamps each read before
// looking at it, frames the answer, and reads its JSON behind, in slices, when nothing else is due. Connections are
// kept alive and reused last-in first-out; none is ever waited for, so nothing caps an open loop. A reused connection
// that turns out closed before any byte came is replaced once; nothing else is ever sent twice.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "load/client_watch.h"
#include "load/interpret.h"
#include "load/load.h"
#include "load/receiver.h"
#include "net/event_loop.h"

namespace goodput {

// One list of requests to play, and how.
struct Play {
  const std::vector<ScheduledRequest>* requests = nullptr;
  const std::vector<std::string>* bytes = nullptr;  // of each request, same order
  TimePoint start;
  int concurrency = 0;    // > 0: closed loop
  int max_in_flight = 0;  // > 0: caps an open loop
  Nanos think_time{0};
  TimePoint window_start;
  std::optional<TimePoint> window_end;  // absent: play everything
  RecordSink* sink = nullptr;
  Progress* progress = nullptr;
};

class Generator {
 public:
  Generator(EventLoop loop, Address server, const LoadOptions& options, const std::atomic<bool>& stop);

  // Plays and returns the records by position in the list. Fails with kUnreachable while no answer has ever shown that
  // an API is there.
  Result<std::vector<RequestRecord>> play(const Play&);
  // Opens connections ahead of need; they are made while the next play waits for its start.
  void warm(int connections);

  bool interrupted() const { return stopped_at_.has_value(); }
  std::optional<TimePoint> stopped_at() const { return stopped_at_; }
  ClientWatch& watch() { return watch_; }
  std::vector<Problem> take_problems() { return std::move(problems_); }
  uint64_t connections() const { return connections_opened_; }
  uint64_t stale_retries() const { return stale_retries_; }

 private:
  enum class Phase : uint8_t { kFree, kConnecting, kSending, kReceiving, kIdle };
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Connection {
    Socket socket;
    Phase phase = Phase::kFree;
    uint32_t serial = 0;  // a readiness of a former socket must not reach this one
    uint32_t exchange = kNone;
    size_t sent = 0;
    bool reused = false, wants_write = false;
  };
  struct Exchange {
    RequestRecord record;
    Receiver receiver;
    uint32_t connection = kNone;
    uint32_t serial = 0;  // counts up with each use, so that an old deadline misses
    size_t position = 0;
    uint32_t reads = 0;
    bool open = false, lingering = false;
    Ending ending = Ending::kComplete;
  };
  struct Deadline {
    TimePoint at;
    uint32_t exchange, serial;
  };

  // Pacing (generator.cc)
  bool over(TimePoint now);
  std::optional<TimePoint> next_due() const;
  void dispatch_due(TimePoint now);
  void expire(TimePoint now);
  TimePoint next_deadline(TimePoint now) const;
  void each_second(TimePoint now);
  void tell_progress(TimePoint now);
  void watch_window(TimePoint now);
  void work_behind(size_t events);
  void conclude(uint32_t exchange);
  void finish_play(TimePoint now);
  std::optional<Error> not_an_api(Exchange&, int error) const;

  // The wire (generator_wire.cc)
  uint32_t open_exchange(size_t position, TimePoint scheduled, TimePoint now);
  void send_on_idle_or_new(uint32_t exchange);
  void send_on_new(uint32_t exchange);
  std::optional<uint32_t> open_connection(bool& exhausted, int& error);
  void close_connection(uint32_t connection);
  void write_some(uint32_t connection);
  void read_some(uint32_t connection);
  void on_ready(const EventLoop::Ready&);
  void broken(uint32_t connection, Ending);
  void end(uint32_t exchange, Ending, TimePoint when, int error = 0);
  Framing fallback_framing() const { return options_.stream ? protocol_.framing : Framing::kWhole; }
  ReadStamp stamp_of(const Received&, TimePoint user, Exchange&) const;

  EventLoop loop_;
  Address server_;
  const LoadOptions& options_;
  const Protocol& protocol_;
  const std::atomic<bool>& stop_;
  ClientWatch watch_;
  Interpreter interpreter_;

  std::vector<char> buffer_;
  std::deque<Connection> connections_;
  std::vector<uint32_t> free_connections_, idle_;
  std::deque<Exchange> exchanges_;
  std::vector<uint32_t> free_exchanges_;
  std::deque<Deadline> deadlines_, lingering_;  // each in order of time
  std::deque<uint32_t> behind_;                 // ended, to be interpreted
  bool behind_begun_ = false;

  Play play_;
  std::vector<RequestRecord> records_;
  size_t next_ = 0;
  std::deque<TimePoint> places_;  // closed loop: when the next places are free
  uint64_t in_flight_ = 0, in_flight_of_window_ = 0, done_ = 0, failed_ = 0;
  std::optional<TimePoint> all_sent_at_, stopped_at_;
  TimePoint next_second_, next_progress_;
  Nanos realtime_offset_{0};

  bool measured_ = false;  // an answer has shown that an API is there
  std::optional<Error> fatal_;
  std::vector<Problem> problems_;
  uint64_t connections_opened_ = 0, stale_retries_ = 0;
};

}  // namespace goodput
