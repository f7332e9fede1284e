// Damaged models must be refused, never take the process down. Flips run in children, so that a crash is a finding with
// a position and not the end of the test.
#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "model/test_files.h"

namespace goodput {
namespace {

size_t metadata_size(const std::string& bytes) { return bytes.find("blk.3.ffn_down.weight") + 100; }

TEST(DamagedModel, EveryTruncationIsAnError) {
  const Folder folder;
  const std::string bytes = bytes_of(tiny_file());
  Random random(1, "truncation");
  std::vector<size_t> lengths{1, 3, 4, 7, 8, 23, 24, 25, bytes.size() - 1, bytes.size() - 33};
  for (int i = 0; i < 100; ++i)
    lengths.push_back(static_cast<size_t>(random.uniform_int(1, static_cast<int64_t>(metadata_size(bytes)))));
  for (int i = 0; i < 50; ++i)
    lengths.push_back(static_cast<size_t>(random.uniform_int(1, static_cast<int64_t>(bytes.size()) - 1)));
  put_bytes(folder / "cut.gguf", bytes);
  std::ranges::sort(lengths, std::greater<>());
  for (const size_t length : lengths) {
    std::filesystem::resize_file(folder / "cut.gguf", length);
    const auto model = Model::load(folder / "cut.gguf");
    ASSERT_FALSE(model) << length;
    EXPECT_EQ(model.error().code, ErrorCode::kUsage) << length;
    EXPECT_TRUE(length < 4 || model.error().message.find("truncated") != std::string::npos) << model.error().message;
  }
}

// Loads and uses the file; how the process ended.
int survive(const std::filesystem::path& path, bool vocabulary_only) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit time{20, 20};
    ::setrlimit(RLIMIT_CPU, &time);
    if (const auto model = Model::load(path, vocabulary_only)) {
      const auto tokens = (*model)->tokenize("some text <|user|> \xF0\x9F\x98\x80", true, true);
      (*model)->detokenize(tokens);
      const std::vector<ChatMessage> chat{{"user", "x"}};
      (void)(*model)->apply_chat_template(chat, true);
    }
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

void flip_everywhere(bool vocabulary_only, int rounds, uint64_t seed) {
  const Folder folder;
  const std::string bytes = bytes_of(tiny_file());
  // Most of the metadata are the texts of the vocabulary; what can do harm stands before and after them.
  const size_t begin = bytes.find("tokenizer.ggml.tokens"), texts = begin + 60,
               end = bytes.find("tokenizer.ggml.scores");
  Random random(seed, "flip");
  for (int i = 0; i < rounds; ++i) {
    std::string damaged = bytes;
    std::string where;
    for (int64_t flips = random.uniform_int(1, 3); flips > 0; --flips) {
      size_t at = static_cast<size_t>(random.uniform_int(4, static_cast<int64_t>(metadata_size(bytes)) - 1));
      if (at >= texts && at < end && random.uniform() < 0.9)
        at = at % texts;
      if (at < 4)
        at += 4;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.uniform_int(0, 7)));
      where += " " + std::to_string(at);
    }
    put_bytes(folder / "flipped.gguf", damaged);
    ASSERT_EQ(survive(folder / "flipped.gguf", vocabulary_only), 0)
        << "seed " << seed << " round " << i << " at" << where;
  }
}

TEST(DamagedModel, FlippedBitsInTheMetadataNeverCrash) { flip_everywhere(false, 300, 1); }
TEST(DamagedModel, FlippedBitsInTheVocabularyNeverCrash) { flip_everywhere(true, 150, 2); }

// The values that libllama asserts on, divides by or allocates from.
TEST(DamagedModel, HostileNumbersAreRefused) {
  const Folder folder;
  const std::string bytes = bytes_of(tiny_file());
  const char* keys[] = {"llama.context_length",        "llama.embedding_length",
                        "llama.block_count",           "llama.feed_forward_length",
                        "llama.attention.head_count",  "llama.attention.head_count_kv",
                        "llama.attention.key_length",  "llama.attention.value_length",
                        "llama.rope.dimension_count",  "llama.vocab_size",
                        "general.file_type",           "tokenizer.ggml.bos_token_id",
                        "tokenizer.ggml.eos_token_id", "tokenizer.ggml.unknown_token_id",
                        "general.quantization_version"};
  for (const char* key : keys) {
    for (const uint32_t value : {0u, 1u, 3u, 7u, 65u, 513u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
      std::string damaged = bytes;
      size_t at = 0;  // the key as a whole, preceded by its length: one key is a prefix of another
      do
        at = damaged.find(key, at + 1);
      while (static_cast<uint8_t>(damaged[at - 8]) != std::strlen(key));
      std::memcpy(damaged.data() + at + std::strlen(key) + 4, &value, 4);
      put_bytes(folder / "hostile.gguf", damaged);
      for (const bool vocabulary_only : {false, true})
        EXPECT_EQ(survive(folder / "hostile.gguf", vocabulary_only), 0) << key << " = " << value;
    }
  }
}

}  // namespace
}  // namespace goodput
