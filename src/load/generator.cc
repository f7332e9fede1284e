#include "load/generator.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/limits.h"
#include "net/http_fetch.h"

namespace goodput {
namespace {

constexpr Nanos kLongestWait = milliseconds(50);  // how late a stop may be noticed
constexpr Nanos kStopGrace = seconds(1);
constexpr Nanos kParseMargin = microseconds(150);  // no parsing this near to a send
constexpr size_t kSlice = 16;                      // events parsed between two looks at the sockets
constexpr int kBurst = 64;                         // sends between two looks at the sockets

}  // namespace

Generator::Generator(EventLoop loop, Address server, const LoadOptions& options, const std::atomic<bool>& stop)
    : loop_(std::move(loop)),
      server_(std::move(server)),
      options_(options),
      protocol_(protocol_of(options.api)),
      stop_(stop),
      watch_(options.server_pid) {
  buffer_.resize(256 * 1024);
  realtime_offset_ = realtime_offset();
  watch_.clock_offset(realtime_offset_);
  next_second_ = monotonic_now() + seconds(1);
}

Result<std::vector<RequestRecord>> Generator::play(const Play& play) {
  play_ = play;
  records_.assign(play.requests->size(), RequestRecord{});
  next_ = 0;
  done_ = failed_ = in_flight_of_window_ = 0;
  all_sent_at_.reset();
  places_.assign(static_cast<size_t>(std::max(play.concurrency, 0)), play.start);
  while (true) {
    const TimePoint now = monotonic_now();
    if (now >= next_second_)
      each_second(now);
    if (play_.progress != nullptr && now >= next_progress_)
      tell_progress(now);
    watch_window(now);
    expire(now);
    dispatch_due(now);
    if (over(now))
      break;
    for (const auto& ready : loop_.wait_until(next_deadline(now)))
      on_ready(ready);
    const auto due = next_due();
    if (!behind_.empty() && (!due || *due - monotonic_now() > kParseMargin))
      work_behind(kSlice);
  }
  finish_play(monotonic_now());
  if (fatal_)
    return tl::unexpected<Error>(*fatal_);
  return std::move(records_);
}

std::optional<TimePoint> Generator::next_due() const {
  if (next_ >= play_.requests->size() || stopped_at_)
    return std::nullopt;
  if (play_.concurrency > 0)
    return places_.empty() ? std::nullopt : std::optional(places_.front());
  if (play_.max_in_flight > 0 && in_flight_ >= static_cast<uint64_t>(play_.max_in_flight))
    return std::nullopt;
  return play_.start + (*play_.requests)[next_].at;
}

bool Generator::over(TimePoint now) {
  if (fatal_)
    return true;
  if (!stopped_at_ && stop_.load(std::memory_order_relaxed))
    stopped_at_ = now;
  if (stopped_at_)
    return in_flight_ == 0 || now >= *stopped_at_ + kStopGrace;
  const bool all_sent = next_ >= play_.requests->size();
  if (all_sent && !all_sent_at_)
    all_sent_at_ = now;
  if (all_sent && in_flight_ == 0)
    return true;
  if (play_.window_end && now >= *play_.window_end) {
    // A capped send of the window may still be to come.
    const bool more =
        !all_sent && play_.concurrency == 0 && play_.start + (*play_.requests)[next_].at < *play_.window_end;
    if (in_flight_of_window_ == 0 && !more)
      return true;
    return now >= *play_.window_end + options_.drain_limit;
  }
  return all_sent && now >= *all_sent_at_ + options_.drain_limit;
}

void Generator::dispatch_due(TimePoint now) {
  for (int i = 0; i < kBurst; ++i) {
    const auto due = next_due();
    if (!due || *due > now)
      return;
    if (play_.concurrency > 0)
      places_.pop_front();
    send_on_idle_or_new(open_exchange(next_++, *due, monotonic_now()));
  }
}

void Generator::expire(TimePoint now) {
  const auto pass = [&](std::deque<Deadline>& queue, Ending ending) {
    while (!queue.empty() && (queue.front().at <= now || !exchanges_[queue.front().exchange].open ||
                              exchanges_[queue.front().exchange].serial != queue.front().serial)) {
      const Deadline d = queue.front();
      queue.pop_front();
      Exchange& x = exchanges_[d.exchange];
      if (x.open && x.serial == d.serial)
        end(d.exchange, ending, now);
    }
  };
  pass(lingering_, Ending::kComplete);
  pass(deadlines_, Ending::kTimeout);
}

TimePoint Generator::next_deadline(TimePoint now) const {
  TimePoint at = std::min(now + kLongestWait, next_second_);
  if (const auto due = next_due()) {
    at = std::min(at, *due);
    if (!behind_.empty() && *due - now > kParseMargin)
      at = now;
  } else if (!behind_.empty()) {
    at = now;
  }
  if (!deadlines_.empty())
    at = std::min(at, deadlines_.front().at);
  if (!lingering_.empty())
    at = std::min(at, lingering_.front().at);
  return at;
}

void Generator::each_second(TimePoint now) {
  next_second_ = now + seconds(1);
  realtime_offset_ = realtime_offset();
  watch_.clock_offset(realtime_offset_);
  if (options_.on_second && play_.progress != nullptr)
    options_.on_second({next_, done_, play_.requests->size()});
}

void Generator::tell_progress(TimePoint now) {
  next_progress_ = now + milliseconds(250);
  const double all = static_cast<double>(std::max<size_t>(play_.requests->size(), 1));
  double share = static_cast<double>(done_) / all;
  if (play_.window_end)
    share = to_seconds(now - play_.start) / std::max(1e-9, to_seconds(*play_.window_end - play_.start));
  std::string line =
      std::to_string(next_) + " sent, " + std::to_string(in_flight_) + " in flight, " + std::to_string(done_) + " done";
  if (failed_ > 0)
    line += ", " + std::to_string(failed_) + " failed";
  play_.progress->update(std::clamp(share, 0.0, 1.0), line);
}

void Generator::watch_window(TimePoint now) {
  if (play_.progress == nullptr)
    return;  // priming
  if (!watch_.began() && now >= play_.window_start)
    watch_.begin(now, loop_.waited());
  if (watch_.began() && !watch_.ended() && play_.window_end && now >= *play_.window_end)
    watch_.end(now, loop_.waited());
}

// Reads on in the oldest ended answer; several small ones, or a slice of a large one.
void Generator::work_behind(size_t events) {
  const uint32_t index = behind_.front();
  Exchange& x = exchanges_[index];
  if (!behind_begun_)
    interpreter_.begin(protocol_, x.receiver.capture(), x.ending, Tokens((*play_.requests)[x.position].prompt.size()),
                       x.record);
  behind_begun_ = true;
  if (!interpreter_.advance(events))
    return;
  behind_begun_ = false;
  behind_.pop_front();
  conclude(index);
}

void Generator::conclude(uint32_t index) {
  Exchange& x = exchanges_[index];
  ++done_;
  if (x.record.outcome != Outcome::kOk) {
    ++failed_;
    const std::string& why = interpreter_.message();
    const auto known =
        std::find_if(problems_.begin(), problems_.end(), [&](const Problem& p) { return p.what == why; });
    if (known != problems_.end()) {
      ++known->count;
    } else if (problems_.size() < static_cast<size_t>(limits::kMaxProblems)) {
      problems_.push_back({why, 1});
    }
  }
  if (play_.sink != nullptr)
    play_.sink->write(x.record);
  records_[x.position] = std::move(x.record);
  free_exchanges_.push_back(index);
}

void Generator::finish_play(TimePoint now) {
  for (uint32_t i = 0; i < exchanges_.size(); ++i) {
    if (exchanges_[i].open)
      end(i, Ending::kRunEnded, now);
  }
  deadlines_.clear();
  lingering_.clear();
  while (!behind_.empty())
    work_behind(SIZE_MAX);
  if (play_.progress != nullptr && watch_.began() && !watch_.ended())
    watch_.end(now, loop_.waited());
  for (; next_ < play_.requests->size(); ++next_) {
    const ScheduledRequest& request = (*play_.requests)[next_];
    RequestRecord& r = records_[next_];
    r.index = request.index;
    r.cls = request.cls;
    r.asked_output = request.output;
    r.streamed = options_.stream;
    // In a closed loop it never arrived before the end.
    r.scheduled = play_.concurrency > 0 ? now : play_.start + request.at;
    if (play_.sink != nullptr)
      play_.sink->write(r);
  }
}

// Whether the end of an exchange says that there is no such API, as long as nothing has ever shown that there is.
std::optional<Error> Generator::not_an_api(Exchange& x, int error) const {
  const Capture& capture = x.receiver.capture();
  const auto unreachable = [&](std::string message) {
    return Error{ErrorCode::kUnreachable, std::move(message), options_.base_url};
  };
  if (x.ending == Ending::kConnectFailed)
    return unreachable(std::string("cannot connect: ") + std::strerror(error));
  if (capture.status == 0 && x.ending == Ending::kMalformed) {
    return unreachable("expected an HTTP server; " + describe_foreign_bytes(x.receiver.foreign_head()));
  }
  const int status = capture.status;
  if (status != 401 && status != 403 && status != 404 && status != 405)
    return std::nullopt;
  std::string message = "POST of a request was answered with HTTP " + std::to_string(status);
  if (!capture.raw.empty())
    message += ": " + capture.raw.substr(0, 200);
  message += status <= 403 ? std::string("; an API key is needed")
                           : "; expected a server that speaks " + std::string(protocol_.name) + " and knows this model";
  return unreachable(std::move(message));
}

}  // namespace goodput
