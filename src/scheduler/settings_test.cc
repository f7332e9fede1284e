// The table of settings: text both ways, ranges as they are told, combinations that cannot work.
#include "scheduler/settings.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace goodput {
namespace {

TEST(Settings, EveryRowReadsBackWhatItWrites) {
  const Settings defaults;
  for (const SettingRow& row : setting_rows()) {
    Settings s;
    const std::string text = setting_text(defaults, row.name);
    EXPECT_TRUE(set_setting(s, row.name, text)) << row.name << " " << text;
    EXPECT_EQ(s, defaults) << row.name;
    EXPECT_FALSE(row.meaning.empty());
    EXPECT_FALSE(row.range.empty());
  }
  EXPECT_EQ(setting_rows().size(), 11u) << "a new field needs a row";
}

TEST(Settings, TextForms) {
  Settings s;
  EXPECT_TRUE(set_setting(s, "scheduling_policy", "priority"));
  EXPECT_TRUE(set_setting(s, "batching", "static"));
  EXPECT_TRUE(set_setting(s, "enable_prefix_caching", "false"));
  EXPECT_TRUE(set_setting(s, "static_batch_wait", "0.25s"));
  EXPECT_TRUE(set_setting(s, "max_num_batched_tokens", "1024"));
  EXPECT_EQ(s.scheduling_policy, SchedulingPolicy::kPriority);
  EXPECT_EQ(s.batching, Batching::kStatic);
  EXPECT_FALSE(s.enable_prefix_caching);
  EXPECT_EQ(s.static_batch_wait, milliseconds(250));
  EXPECT_EQ(s.max_num_batched_tokens, Tokens(1024));
  EXPECT_EQ(setting_text(s, "static_batch_wait"), "250ms");
  EXPECT_EQ(setting_text(s, "enable_prefix_caching"), "false");
  EXPECT_EQ(setting_text(s, "batching"), "static");
  s.static_batch_wait = Nanos(1'234'567);
  EXPECT_EQ(setting_text(s, "static_batch_wait"), "0.001234567s");
  Settings again;
  EXPECT_TRUE(set_setting(again, "static_batch_wait", setting_text(s, "static_batch_wait")));
  EXPECT_EQ(again.static_batch_wait, s.static_batch_wait);
}

TEST(Settings, RangesAreHeldAndSaid) {
  const auto message = [](std::string_view name, std::string_view value) {
    Settings s;
    const auto r = set_setting(s, name, value);
    EXPECT_EQ(s, Settings{}) << "nothing is changed by a bad value";
    EXPECT_FALSE(r);
    return r ? std::string() : r.error().message;
  };
  EXPECT_EQ(message("max_num_seqs", "257"), "max_num_seqs is '257', expected a value in 1..256 sequences");
  EXPECT_EQ(message("max_num_seqs", "many"), "max_num_seqs is 'many', expected a value in 1..256 sequences");
  EXPECT_EQ(message("batching", "dynamic"), "batching is 'dynamic', expected one in continuous, static");
  for (const std::string_view bad : {"", "-1", "0", "1e3", "99999999999999999999", "12 ", "0x10"}) {
    message("max_num_seqs", bad);
    message("block_size", bad);
    message("enable_chunked_prefill", bad);
  }
  message("static_batch_wait", "61s");
  message("static_batch_wait", "-1ms");
  message("max_num_batched_tokens", "65537");
  message("max_model_len", "1048577");
  message("max_num_queued_reqs", "4097");
}

// The range that people read is the range that is held.
TEST(Settings, RangesInTheTableAreTheTrueOnes) {
  for (const SettingRow& row : setting_rows()) {
    const size_t dots = row.range.find("..");
    if (row.type != "int" || dots == std::string_view::npos)
      continue;
    const auto low = std::stoll(std::string(row.range.substr(0, dots)));
    const auto high = std::stoll(std::string(row.range.substr(dots + 2)));
    Settings s;
    EXPECT_TRUE(set_setting(s, row.name, std::to_string(low))) << row.name;
    EXPECT_TRUE(set_setting(s, row.name, std::to_string(high))) << row.name;
    EXPECT_FALSE(set_setting(s, row.name, std::to_string(low - 1))) << row.name;
    EXPECT_FALSE(set_setting(s, row.name, std::to_string(high + 1))) << row.name;
  }
}

TEST(Settings, AnUnknownNameIsAnsweredWithTheNearest) {
  Settings s;
  const auto r = set_setting(s, "max_num_seq", "4");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::kUsage);
  EXPECT_EQ(r.error().message, "there is no setting 'max_num_seq'; did you mean 'max_num_seqs'?");
  const auto far = set_setting(s, "zzz", "4");
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().message, "there is no setting 'zzz'");
}

TEST(Settings, TheProductsGridIsValid) {
  for (const int seqs : {2, 4, 8, 16, 32}) {
    for (const int budget : {64, 256, 1024}) {
      for (const auto policy : {SchedulingPolicy::kFcfs, SchedulingPolicy::kPriority}) {
        for (const auto batching : {Batching::kContinuous, Batching::kStatic}) {
          Settings s;
          s.max_num_seqs = seqs;
          s.max_num_batched_tokens = Tokens(budget);
          s.scheduling_policy = policy;
          s.batching = batching;
          EXPECT_TRUE(validate(s));
        }
      }
    }
  }
}

TEST(Settings, ImpossibleCombinationsAreNamed) {
  Settings s;
  s.max_num_seqs = 32;
  s.max_num_batched_tokens = Tokens(31);
  auto r = validate(s);
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().message.find("max_num_batched_tokens is 31, below max_num_seqs 32"), std::string::npos);

  s = {};
  s.enable_chunked_prefill = false;
  r = validate(s);
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().message.find("enable_chunked_prefill is false"), std::string::npos);
  s.max_num_batched_tokens = s.max_model_len;
  EXPECT_TRUE(validate(s));

  s = {};
  s.max_num_seqs = 0;
  r = validate(s);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().message, "max_num_seqs is '0', expected a value in 1..256 sequences");
  s = {};
  s.scheduling_policy = static_cast<SchedulingPolicy>(9);
  EXPECT_FALSE(validate(s));
}

}  // namespace
}  // namespace goodput
