#include "model/synth.h"

#include <algorithm>
#include <csignal>
#include <thread>
#include <vector>

#include <gguf.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "model/test_files.h"

namespace goodput {
namespace {

std::string tensor(const std::filesystem::path& path, const char* name) {
  gguf_context* g = gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr});
  const int64_t id = gguf_find_tensor(g, name);
  EXPECT_GE(id, 0) << name;
  const size_t at = gguf_get_data_offset(g) + gguf_get_tensor_offset(g, id), size = gguf_get_tensor_size(g, id);
  gguf_free(g);
  return bytes_of(path).substr(at, size);
}

TEST(Synth, TheSameOptionsGiveTheSameBytesOnEveryMachine) {
  // Changed on purpose? Then raise kFormat in synth.cc too, or cached models of the old bytes stay in use.
  EXPECT_EQ(sha256_hex(bytes_of(tiny_file())), "b62c378b77a730bb02c841b3a11dd0854d869bc9373e0981d9c9c0629aea2ad9");
}

TEST(Synth, SizesAreWhatTheirNamesPromise) {
  const Folder folder;
  const struct {
    SynthSize size;
    double low, high;
  } expected[] = {{SynthSize::kTiny, 0.8e6, 1.3e6}, {SynthSize::kSmall, 17e6, 23e6}, {SynthSize::kBase, 115e6, 135e6}};
  for (const auto& e : expected) {
    for (const SynthType type : {SynthType::kQ8_0, SynthType::kQ4_0}) {
      const auto path = folder / "model.gguf";
      ASSERT_TRUE(write_synthetic_model(path, {.size = e.size, .type = type}));
      const auto model = Model::load(path);
      ASSERT_TRUE(model) << describe(model.error());
      const ModelInfo info = (*model)->info();
      EXPECT_GT(static_cast<double>(info.parameters), e.low);
      EXPECT_LT(static_cast<double>(info.parameters), e.high);
      EXPECT_EQ(info.file_type, type == SynthType::kQ8_0 ? "Q8_0" : "Q4_0");
      EXPECT_EQ(info.context_length, Tokens(4096));
      EXPECT_TRUE(info.has_chat_template);
    }
  }
}

TEST(Synth, AShorterModelIsAPrefixOfALongerOne) {
  const Folder folder;
  ASSERT_TRUE(write_synthetic_model(folder / "short.gguf", {.layers = 2}));
  ASSERT_TRUE(write_synthetic_model(folder / "damped.gguf", {.tail_from = 2, .tail_scale = 0.05}));
  for (const char* name : {"token_embd.weight", "output.weight", "blk.0.attn_q.weight", "blk.1.ffn_down.weight"}) {
    EXPECT_EQ(tensor(folder / "short.gguf", name), tensor(tiny_file(), name)) << name;
    EXPECT_EQ(tensor(folder / "damped.gguf", name), tensor(tiny_file(), name)) << name;
  }
  EXPECT_NE(tensor(folder / "damped.gguf", "blk.2.ffn_down.weight"), tensor(tiny_file(), "blk.2.ffn_down.weight"));
  EXPECT_EQ(tensor(folder / "damped.gguf", "blk.2.ffn_up.weight"), tensor(tiny_file(), "blk.2.ffn_up.weight"));
  EXPECT_NE(tensor(tiny_file(), "blk.0.attn_q.weight"), tensor(tiny_file(), "blk.1.attn_q.weight"));
}

TEST(Synth, SeedsGiveDifferentWeights) {
  const Folder folder;
  ASSERT_TRUE(write_synthetic_model(folder / "two.gguf", {.seed = 2}));
  EXPECT_NE(tensor(folder / "two.gguf", "output.weight"), tensor(tiny_file(), "output.weight"));
}

TEST(Synth, ACutVocabularyKeepsWhatCarriesMeaning) {
  const auto model = tiny_model();
  EXPECT_EQ(model->vocabulary_size(), 4096);
  for (const char* text : {"<|user|>", "<|end|>", "<|assistant|>", "<|system|>", "<|endoftext|>"})
    EXPECT_EQ(model->tokenize(text, false, true).size(), 1u) << text;
  for (const char* text : {"e", "Z", "the", "\n"})
    EXPECT_LE(model->tokenize(text, false, true).size(), 2u) << text;
  const std::string text = "na\xC3\xAFve \xE2\x82\xAC 1 \xF0\x9F\x98\x80\t\n  <|user|> end";
  EXPECT_EQ(model->detokenize(model->tokenize(text, false, false)), text);
}

TEST(Synth, AVocabularyFileIsTakenAndAForeignOneRefused) {
  const Folder folder;
  const std::filesystem::path& made = tiny_file();  // any GGUF with a tokenizer will do
  ASSERT_TRUE(write_synthetic_model(folder / "copy.gguf", {.vocabulary = made}));
  EXPECT_EQ(tensor(folder / "copy.gguf", "output.weight"), tensor(made, "output.weight"));
  put_bytes(folder / "text", "hello, I am no vocabulary at all");
  const auto foreign = write_synthetic_model(folder / "no.gguf", {.vocabulary = folder / "text"});
  ASSERT_FALSE(foreign);
  EXPECT_NE(describe(foreign.error()).find("not a GGUF file"), std::string::npos) << describe(foreign.error());
  EXPECT_FALSE(std::filesystem::exists(folder / "no.gguf"));
}

TEST(Synth, ImpossibleOptionsAreNamed) {
  const Folder folder;
  for (const SynthOptions& o : {SynthOptions{.layers = -1}, SynthOptions{.layers = 513}, SynthOptions{.tail_from = -2},
                                SynthOptions{.tail_scale = 0}, SynthOptions{.tail_scale = 1.5}}) {
    const auto result = write_synthetic_model(folder / "x.gguf", o);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kUsage);
  }
  EXPECT_EQ(folder.files(), 0u);
  EXPECT_NE(parse_synth_size("huge").error().message.find("tiny, small or base"), std::string::npos);
  EXPECT_NE(parse_synth_type("f16").error().message.find("q8_0 or q4_0"), std::string::npos);
}

TEST(Synth, UnwritableTargetsFailAndLeaveNothing) {
  const Folder folder;
  std::filesystem::create_directory(folder / "d");
  EXPECT_FALSE(write_synthetic_model(folder / "d", {}));
  EXPECT_FALSE(write_synthetic_model(folder / "absent/x.gguf", {}));
  EXPECT_FALSE(write_synthetic_model("/dev/null", {}));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(folder.files(), 1u);
}

// A full disk, as a limit on the size of files, in a child whose limits may be spoiled.
TEST(Synth, AFullDiskLeavesTheOldFile) {
  const Folder folder;
  put_bytes(folder / "model.gguf", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{300'000, 300'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, SIG_IGN);
    const auto result = write_synthetic_model(folder / "model.gguf", {});
    ::_exit(!result && result.error().code == ErrorCode::kIo ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(bytes_of(folder / "model.gguf"), "old");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(Synth, TheCacheIsFilledOnceMendedAndSafeForSeveralMakers) {
  const Folder folder;
  ::setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  std::vector<std::string> made(4);
  {
    std::vector<std::jthread> makers;
    for (std::string& path : made)
      makers.emplace_back([&path] {
        const auto result = cached_synthetic_model({});
        path = result ? result->string() : describe(result.error());
      });
  }
  for (const std::string& path : made)
    EXPECT_EQ(path, made.front());
  EXPECT_EQ(bytes_of(made.front()), bytes_of(tiny_file()));
  std::filesystem::resize_file(made.front(), 1000);
  ASSERT_TRUE(cached_synthetic_model({}));
  EXPECT_EQ(bytes_of(made.front()), bytes_of(tiny_file()));
  const SynthOptions others[] = {{.type = SynthType::kQ4_0},          {.seed = 2},      {.layers = 3},
                                 {.tail_from = 1, .tail_scale = 0.5}, {.tail_from = 1}, {.vocabulary = tiny_file()}};
  for (const SynthOptions& o : others) {
    const auto path = cached_synthetic_model(o);
    ASSERT_TRUE(path) << describe(path.error());
    EXPECT_EQ(std::ranges::count(made, path->string()), 0);
    made.push_back(path->string());
  }
  ::unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace goodput
