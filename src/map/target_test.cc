#include "map/target.h"

#include <gtest/gtest.h>

namespace goodput {
namespace {

TEST(Launch, FillsInPortAndSettings) {
  Settings s;
  s.max_num_seqs = 8;
  s.max_num_batched_tokens = Tokens(512);
  EXPECT_EQ(*render_launch("server --port {port} -np {max_num_seqs} -b {max_num_batched_tokens}", 81, s),
            "server --port 81 -np 8 -b 512");
  EXPECT_EQ(*render_launch("server {port} '{{\"a\":1}'", 81, s), "server 81 '{\"a\":1}'");
}

TEST(Launch, NamesWhatIsWrong) {
  const Settings s;
  const auto message = [&](std::string_view text) {
    const auto r = render_launch(text, 1, s);
    return r ? std::string("no error") : describe(r.error());
  };
  EXPECT_NE(message("server").find("{port}"), std::string::npos);
  EXPECT_NE(message("server {port} {max_num_seq}").find("did you mean {max_num_seqs}"), std::string::npos);
  EXPECT_NE(message("server {port} {").find("without"), std::string::npos);
}

TEST(Launch, FlagsNameOnlyWhatDiffers) {
  Settings s;
  EXPECT_EQ(serve_flags(s), "");
  s.max_num_seqs = 4;
  s.scheduling_policy = SchedulingPolicy::kPriority;
  EXPECT_EQ(serve_flags(s), "--max-num-seqs 4 --scheduling-policy priority");
}

}  // namespace
}  // namespace goodput
