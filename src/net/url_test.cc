#include "net/url.h"

#include <gtest/gtest.h>

namespace goodput {
namespace {

TEST(Url, Parts) {
  const auto u = parse_url("http://127.0.0.1:8000/v1/");
  ASSERT_TRUE(u);
  EXPECT_EQ(u->host, "127.0.0.1");
  EXPECT_EQ(u->port, 8000);
  EXPECT_EQ(u->path, "/v1");
  EXPECT_EQ(u->authority(), "127.0.0.1:8000");
  EXPECT_EQ(parse_url("localhost")->authority(), "localhost");
  EXPECT_EQ(parse_url("http://[::1]:9/")->host, "::1");
  EXPECT_EQ(parse_url("http://[::1]:9/")->authority(), "[::1]:9");
}

TEST(Url, HttpsAndUnixSockets) {
  const auto tls = parse_url("https://api.example.com/v1");
  ASSERT_TRUE(tls);
  EXPECT_TRUE(tls->tls);
  EXPECT_EQ(tls->port, 443);
  EXPECT_EQ(tls->authority(), "api.example.com");
  EXPECT_EQ(parse_url("https://x:80")->authority(), "x:80");
  EXPECT_EQ(parse_url("http://x:443")->authority(), "x:443");
  const auto local = parse_url("unix:///run/server.sock");
  ASSERT_TRUE(local);
  EXPECT_EQ(local->unix_path, "/run/server.sock");
  EXPECT_EQ(local->authority(), "localhost");
  EXPECT_FALSE(local->tls);
}

TEST(Url, RefusesWhatItCannotMean) {
  for (const char* bad : {"", "http://", "unix://", "unix://x", "ftp://x", "http://x:0", "http://x:65536",
                          "http://x:", "http://x:8a", "http://[::1", "http://[::1]x", "http://u@x", "http://x/?q",
                          "http://x y", "http://x\r\nHost: z", "http://x:99999999999999999999"}) {
    const auto u = parse_url(bad);
    ASSERT_FALSE(u) << bad;
    EXPECT_EQ(u.error().code, ErrorCode::kUsage);
    EXPECT_NE(u.error().message.find("http://127.0.0.1:8000"), std::string::npos) << "an example helps";
  }
}

}  // namespace
}  // namespace goodput
