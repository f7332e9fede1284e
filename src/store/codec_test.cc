#include "store/codec.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "store/arbitrary.h"
#include "store/study.h"

namespace goodput {
namespace {

TEST(Codec, RecordsReadBackAsTheyWere) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    Random random(seed, "records");
    const auto records = arbitrary::records(random, 8);
    const auto back = decode_records(encode_records(records));
    RC_ASSERT(back.has_value());
    RC_ASSERT(*back == records);
  }));
}

TEST(Codec, StepsReadBackAsTheyWere) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    Random random(seed, "steps");
    const auto steps = arbitrary::steps(random, 40);
    const auto back = decode_steps(encode_steps(steps));
    RC_ASSERT(back.has_value());
    RC_ASSERT(*back == steps);
  }));
}

TEST(Codec, NoBytesAreBothReadableAndAmbiguous) {
  // Whatever damage is done, the decoder refuses it or reads a value whose encoding is exactly those bytes.
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    Random random(seed, "mutations");
    std::string records = encode_records(arbitrary::records(random, 4));
    std::string steps = encode_steps(arbitrary::steps(random, 4));
    for (std::string* bytes : {&records, &steps})
      for (int64_t n = random.uniform_int(1, 4); n > 0; --n) {
        const auto at = static_cast<size_t>(random.uniform_int(0, std::ssize(*bytes)));
        switch (random.uniform_int(0, 3)) {
          case 0:
            bytes->resize(at);
            break;
          case 1:
            bytes->insert(at, 1, static_cast<char>(random.next()));
            break;
          case 2:
            if (at < bytes->size())
              bytes->erase(at, 1);
            break;
          default:
            if (at < bytes->size())
              (*bytes)[at] = static_cast<char>(random.next());
        }
      }
    if (const auto back = decode_records(records))
      RC_ASSERT(encode_records(*back) == records);
    if (const auto back = decode_steps(steps))
      RC_ASSERT(encode_steps(*back) == steps);
  }));
}

TEST(Codec, EveryPrefixIsRefused) {
  Random random(7, "prefixes");
  const std::string bytes = encode_records(arbitrary::records(random, 3));
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(decode_records(bytes.substr(0, n))) << n;
}

TEST(Codec, AHugeCountReservesNothing) {
  codec::Writer w;
  w.out() = encode_steps({}).substr(0, 8);
  w.unsigned_number(UINT64_MAX);
  const auto refused = decode_steps(w.out());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("a count beyond the data at byte"), std::string::npos);
}

TEST(Codec, TimesThatCouldOverflowADifferenceAreRefused) {
  RequestRecord r;
  r.scheduled = TimePoint(-limits::kMaxStoredTime);
  r.done = TimePoint(limits::kMaxStoredTime);
  EXPECT_TRUE(decode_records(encode_records({r})));
  r.done = TimePoint(limits::kMaxStoredTime + Nanos(1));
  const auto refused = decode_records(encode_records({r}));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("a time out of range"), std::string::npos);
}

TEST(Codec, ForeignDataIsNamed) {
  const auto refused = decode_records(encode_steps({}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "these bytes are not request records: another kind of data, or another version of it at byte 3");
}

TEST(Codec, OverlongNumbersAreRefused) {
  for (const std::string_view bytes :
       {std::string_view("\x80\x00", 2), std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10),
        std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11)}) {
    codec::Reader r(bytes);
    r.unsigned_number();
    EXPECT_FALSE(r.ok());
  }
}

TEST(Codec, ATypicalRecordIsSmall) {
  // 32 tokens of a chat answer, stamped by the kernel: the study file's growth per request.
  RequestRecord r;
  r.scheduled = TimePoint(seconds(5000));
  for (auto* t : {&r.dispatched, &r.connected, &r.sent, &r.first_chunk, &r.first_token, &r.first_answer, &r.done})
    *t = r.scheduled + milliseconds(20);
  for (int i = 0; i < 32; ++i)
    r.events.push_back({milliseconds(20 + 8 * i), milliseconds(20 + 8 * i) - microseconds(30), 1});
  EXPECT_LT(encode_records({r}).size(), 400u);
}

TEST(RecordsHash, DependsOnEveryRecordAndTheirOrder) {
  Random random(3, "hash");
  std::vector<RequestRecord> records = {arbitrary::record(random, 0), arbitrary::record(random, 1)};
  const std::string hash = records_hash(records);
  EXPECT_EQ(hash.size(), 64u);
  EXPECT_EQ(hash, records_hash(records));
  std::swap(records[0], records[1]);
  EXPECT_NE(hash, records_hash(records));
  std::swap(records[0], records[1]);
  records[1].chunks ^= 1;
  EXPECT_NE(hash, records_hash(records));
}

}  // namespace
}  // namespace goodput
