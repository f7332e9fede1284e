#include "store/codec.h"

#include <bit>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/result.h"
#include "store/study.h"

namespace goodput {
namespace codec {
namespace {

// A field that is not written here would be lost from every study: write it, read it, raise the version, then the size.
static_assert(sizeof(RequestRecord) == 336 && sizeof(TokenEvent) == 32 && sizeof(ServerTimes) == 88 &&
                  sizeof(StepRecord) == 128,
              "a record has a field that the codec may not know");

// The optional times of a record and of its server part, in the order of their presence bits.
constexpr std::optional<TimePoint> RequestRecord::* kTimes[] = {
    &RequestRecord::dispatched,  &RequestRecord::connected,    &RequestRecord::sent, &RequestRecord::first_chunk,
    &RequestRecord::first_token, &RequestRecord::first_answer, &RequestRecord::done, &RequestRecord::closed};
constexpr std::optional<Tokens> RequestRecord::* kCounts[] = {
    &RequestRecord::prompt_tokens, &RequestRecord::cached_tokens, &RequestRecord::output_tokens,
    &RequestRecord::hidden_tokens};
constexpr std::optional<TimePoint> ServerTimes::* kServerTimes[] = {&ServerTimes::arrived, &ServerTimes::queued,
                                                                    &ServerTimes::scheduled, &ServerTimes::first_token,
                                                                    &ServerTimes::last_token};
// Presence and truth bits of a record: 8 times, 4 counts, then these.
constexpr uint64_t kStreamed = 1u << (std::size(kTimes) + std::size(kCounts)), kBuffered = kStreamed << 1,
                   kHasServer = kStreamed << 2, kAllBits = (kStreamed << 3) - 1;
constexpr uint8_t kKernelStamp = 1, kCoalesced = 2;  // bits of an event; its channel stands above them
constexpr size_t kLeastEventBytes = 3;

int64_t nanos(TimePoint t) { return t.since_zero().count(); }
TimePoint time_point(int64_t n) { return TimePoint(Nanos(n)); }

void write_event(Writer& w, const TokenEvent& e, int64_t previous) {
  w.byte(static_cast<uint8_t>((e.kernel ? kKernelStamp : 0) | (e.coalesced ? kCoalesced : 0) |
                              (static_cast<uint8_t>(e.channel) << 2)));
  w.difference(e.user.count(), previous);
  if (e.kernel)
    w.difference(e.kernel->count(), e.user.count());
  w.unsigned_number(e.tokens);
}

TokenEvent read_event(Reader& r, int64_t previous) {
  TokenEvent e;
  const uint8_t bits = r.byte();
  if ((bits >> 2) > static_cast<uint8_t>(Channel::kRefusal)) {
    r.refuse("an unknown channel");
    return e;
  }
  e.channel = static_cast<Channel>(bits >> 2);
  e.coalesced = (bits & kCoalesced) != 0;
  e.user = Nanos(r.time(previous));
  if (bits & kKernelStamp)
    e.kernel = Nanos(r.time(e.user.count()));
  e.tokens = r.fitting<uint16_t>();
  return e;
}

void write_server(Writer& w, const ServerTimes& s, TimePoint scheduled) {
  uint8_t bits = 0;
  for (size_t i = 0; i < std::size(kServerTimes); ++i)
    if (s.*kServerTimes[i])
      bits |= static_cast<uint8_t>(1u << i);
  w.byte(bits);
  for (const auto member : kServerTimes)
    if (s.*member)
      w.difference(nanos(*(s.*member)), nanos(scheduled));
  w.signed_number(s.preempted_in_prefill);
  w.signed_number(s.preempted_in_decode);
}

ServerTimes read_server(Reader& r, TimePoint scheduled) {
  ServerTimes s;
  const uint8_t bits = r.byte();
  if (bits >> std::size(kServerTimes))
    r.refuse("unknown server flags");
  for (size_t i = 0; i < std::size(kServerTimes); ++i)
    if (bits >> i & 1)
      s.*kServerTimes[i] = time_point(r.time(nanos(scheduled)));
  s.preempted_in_prefill = r.fitting<int>();
  s.preempted_in_decode = r.fitting<int>();
  return s;
}

}  // namespace

uint8_t Reader::byte() {
  if (!ok_ || bytes_.empty()) {
    refuse("cut short");
    return 0;
  }
  const auto b = static_cast<uint8_t>(bytes_.front());
  bytes_.remove_prefix(1);
  return b;
}

uint64_t Reader::unsigned_number() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t b = byte();
    if (!ok_)
      return 0;
    if (shift == 63 && b > 1)
      break;
    value |= static_cast<uint64_t>(b & 0x7F) << shift;
    if (b & 0x80)
      continue;
    if (b == 0 && shift > 0)
      break;  // a shorter form exists
    return value;
  }
  refuse("a number that is not in its shortest form");
  return 0;
}

void write_record(Writer& w, const RequestRecord& record) {
  w.byte(kRecordVersion);
  uint64_t bits =
      (record.streamed ? kStreamed : 0) | (record.buffered ? kBuffered : 0) | (record.server ? kHasServer : 0);
  for (size_t i = 0; i < std::size(kTimes); ++i)
    if (record.*kTimes[i])
      bits |= uint64_t{1} << i;
  for (size_t i = 0; i < std::size(kCounts); ++i)
    if (record.*kCounts[i])
      bits |= uint64_t{1} << (std::size(kTimes) + i);
  w.unsigned_number(bits);
  w.unsigned_number(record.index);
  w.unsigned_number(record.cls);
  w.byte(static_cast<uint8_t>(record.outcome));
  w.byte(static_cast<uint8_t>(record.error));
  w.byte(static_cast<uint8_t>(record.finish));
  w.byte(static_cast<uint8_t>(record.token_source));
  w.signed_number(record.http_status);
  w.signed_number(record.attempts);
  w.signed_number(nanos(record.scheduled));
  for (const auto member : kTimes)
    if (record.*member)
      w.difference(nanos(*(record.*member)), nanos(record.scheduled));
  for (const auto member : kCounts)
    if (record.*member)
      w.signed_number((record.*member)->count());
  w.signed_number(record.asked_output.count());
  w.unsigned_number(record.chunks);
  w.unsigned_number(record.events.size());
  int64_t previous = 0;
  for (const TokenEvent& e : record.events) {
    write_event(w, e, previous);
    previous = e.user.count();
  }
  if (record.server)
    write_server(w, *record.server, record.scheduled);
}

RequestRecord read_record(Reader& r) {
  RequestRecord record;
  if (const uint8_t version = r.byte(); r.ok() && version != kRecordVersion)
    r.refuse("another version of records");
  const uint64_t bits = r.unsigned_number();
  if (bits & ~kAllBits)
    r.refuse("unknown record flags");
  record.streamed = (bits & kStreamed) != 0;
  record.buffered = (bits & kBuffered) != 0;
  record.index = r.unsigned_number();
  record.cls = r.fitting<uint16_t>();
  record.outcome = r.enumerator(Outcome::kNotSent);
  record.error = r.enumerator(ErrorKind::kLimit);
  record.finish = r.enumerator(FinishReason::kError);
  record.token_source = r.enumerator(TokenSource::kChunks);
  record.http_status = r.fitting<int>();
  record.attempts = r.fitting<int>();
  record.scheduled = time_point(r.time(0));
  for (size_t i = 0; i < std::size(kTimes); ++i)
    if (bits >> i & 1)
      record.*kTimes[i] = time_point(r.time(nanos(record.scheduled)));
  for (size_t i = 0; i < std::size(kCounts); ++i)
    if (bits >> (std::size(kTimes) + i) & 1)
      record.*kCounts[i] = Tokens(r.fitting<int32_t>());
    else
      record.*kCounts[i] = std::nullopt;  // not the member's default: hidden_tokens is 0 unless said otherwise
  record.asked_output = Tokens(r.fitting<int32_t>());
  record.chunks = r.fitting<uint32_t>();
  const size_t events = r.count(kLeastEventBytes);
  record.events.reserve(events);
  int64_t previous = 0;
  for (size_t i = 0; i < events && r.ok(); ++i) {
    record.events.push_back(read_event(r, previous));
    previous = record.events.back().user.count();
  }
  if (bits & kHasServer)
    record.server = read_server(r, record.scheduled);
  return record;
}

}  // namespace codec

namespace {

constexpr std::string_view kRecordsMagic("gprecs\x00\x01", 8);  // the last byte is the version
constexpr std::string_view kStepsMagic("gpstep\x00\x01", 8);
constexpr size_t kLeastRecordBytes = 14, kLeastStepBytes = 16;

tl::unexpected<Error> bad_bytes(std::string_view what, const codec::Reader& r) {
  return fail(ErrorCode::kFailed,
              fmt::format("these bytes are not {}: {} at byte {}", what, r.problem(), r.position()));
}

void expect_magic(codec::Reader& r, std::string_view magic) {
  for (const char c : magic)
    if (r.byte() != static_cast<uint8_t>(c))
      r.refuse("another kind of data, or another version of it");
}

void write_step(codec::Writer& w, const StepRecord& s, int64_t previous_start) {
  w.difference(s.start.since_zero().count(), previous_start);
  for (const Nanos n : {s.duration, s.decode, s.sampling, s.tokenization, s.host})
    w.signed_number(n.count());
  w.signed_number(s.shape.prefill.count());
  w.signed_number(s.shape.kv_read.count());
  w.signed_number(s.shape.kv_tiled.count());
  w.signed_number(s.shape.kv_scanned.count());
  w.signed_number(s.shape.kv_dense.count());
  w.signed_number(s.shape.swapped.count());
  for (const int n : {s.shape.decodes, s.shape.passes, s.running, s.waiting, s.preempted})
    w.signed_number(n);
  w.signed_number(s.used.count());
  w.signed_number(s.retained.count());
}

StepRecord read_step(codec::Reader& r, int64_t previous_start) {
  StepRecord s;
  s.start = TimePoint(Nanos(r.time(previous_start)));
  for (Nanos* n : {&s.duration, &s.decode, &s.sampling, &s.tokenization, &s.host})
    *n = Nanos(r.time(0));
  s.shape.prefill = Tokens(r.fitting<int32_t>());
  s.shape.kv_read = KvPairs(r.signed_number());
  s.shape.kv_tiled = KvPairs(r.signed_number());
  s.shape.kv_scanned = KvPairs(r.signed_number());
  s.shape.kv_dense = KvPairs(r.signed_number());
  s.shape.swapped = Tokens(r.fitting<int32_t>());
  for (int* n : {&s.shape.decodes, &s.shape.passes, &s.running, &s.waiting, &s.preempted})
    *n = r.fitting<int>();
  s.used = Blocks(r.fitting<int32_t>());
  s.retained = Blocks(r.fitting<int32_t>());
  return s;
}

}  // namespace

std::string codec::records_header(size_t count) {
  Writer w;
  w.out() = kRecordsMagic;
  w.unsigned_number(count);
  return std::move(w.out());
}

std::string encode_records(const std::vector<RequestRecord>& records) {
  codec::Writer w;
  w.out() = codec::records_header(records.size());
  for (const RequestRecord& record : records)
    codec::write_record(w, record);
  return std::move(w.out());
}

Result<std::vector<RequestRecord>> decode_records(std::string_view bytes) {
  codec::Reader r(bytes);
  expect_magic(r, kRecordsMagic);
  const size_t n = r.count(kLeastRecordBytes);
  std::vector<RequestRecord> records;
  for (size_t i = 0; i < n && r.ok(); ++i)
    records.push_back(codec::read_record(r));
  if (r.ok() && !r.at_end())
    r.refuse("more than was announced");
  if (!r.ok())
    return bad_bytes("request records", r);
  return records;
}

std::string encode_steps(const std::vector<StepRecord>& steps) {
  codec::Writer w;
  w.out() = kStepsMagic;
  w.unsigned_number(steps.size());
  int64_t previous = 0;
  for (const StepRecord& s : steps) {
    write_step(w, s, previous);
    previous = s.start.since_zero().count();
  }
  return std::move(w.out());
}

Result<std::vector<StepRecord>> decode_steps(std::string_view bytes) {
  codec::Reader r(bytes);
  expect_magic(r, kStepsMagic);
  const size_t n = r.count(kLeastStepBytes);
  std::vector<StepRecord> steps;
  steps.reserve(n);
  int64_t previous = 0;
  for (size_t i = 0; i < n && r.ok(); ++i) {
    steps.push_back(read_step(r, previous));
    previous = steps.back().start.since_zero().count();
  }
  if (r.ok() && !r.at_end())
    r.refuse("more than was announced");
  if (!r.ok())
    return bad_bytes("a step log", r);
  return steps;
}

std::string records_hash(const std::vector<RequestRecord>& records) { return sha256_hex(encode_records(records)); }

}  // namespace goodput
