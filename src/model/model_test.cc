#include "model/model.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include "model/test_files.h"

namespace goodput {
namespace {

std::string why(const std::filesystem::path& path, ErrorCode expected = ErrorCode::kUsage) {
  const auto model = Model::load(path);
  if (model)
    return "loaded";
  EXPECT_EQ(model.error().code, expected) << describe(model.error());
  EXPECT_EQ(model.error().context, path.string());
  return model.error().message;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Model, TellsWhatItIs) {
  const ModelInfo info = tiny_model()->info();
  EXPECT_EQ(info.architecture, "llama");
  EXPECT_EQ(info.name, "goodput tiny");
  EXPECT_EQ(info.file_type, "Q8_0");
  EXPECT_EQ(info.layers, 4);
  EXPECT_EQ(info.embedding, 64);
  EXPECT_EQ(info.heads, 2);
  EXPECT_EQ(info.kv_heads, 1);
  EXPECT_EQ(info.vocabulary, tiny_model()->vocabulary_size());
  EXPECT_EQ(info.file_bytes, std::filesystem::file_size(tiny_file()));
  EXPECT_FALSE(info.recurrent || info.hybrid || info.has_encoder || info.sliding_window);
}

TEST(Model, TheVocabularyAloneSaysAndTokenizesTheSame) {
  const auto alone = Model::load(tiny_file(), true);
  ASSERT_TRUE(alone) << describe(alone.error());
  EXPECT_EQ((*alone)->info().parameters, tiny_model()->info().parameters);
  EXPECT_EQ((*alone)->tokenize("the same text", true, false), tiny_model()->tokenize("the same text", true, false));
}

std::string utf8(char32_t c) {
  if (c < 0x80)
    return {static_cast<char>(c)};
  if (c < 0x800)
    return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
  return {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
          static_cast<char>(0x80 | (c & 0x3F))};
}

TEST(Model, TextsSurviveTheirTokens) {
  const auto model = tiny_model();
  EXPECT_TRUE(rc::check([&] {
    std::string text;  // below the surrogates, without the sign that stands for a space
    for (const char32_t c : *rc::gen::container<std::vector<char32_t>>(
             rc::gen::oneOf(rc::gen::inRange<char32_t>(' ', 0x7F), rc::gen::inRange<char32_t>(0, 0x2580))))
      text += utf8(c);
    const auto tokens = model->tokenize(text, false, false);
    RC_ASSERT(model->detokenize(tokens) == text);
    std::string pieces;
    for (const TokenId token : tokens)
      pieces += model->piece(token);
    RC_ASSERT(pieces == (text.empty() ? "" : " " + text));
    RC_ASSERT(model->tokenize(text, true, false).size() == tokens.size() + 1);
  }));
}

TEST(Model, RubbishTokenizesToo) {
  const auto model = tiny_model();
  EXPECT_TRUE(rc::check([&] {
    const auto rubbish = *rc::gen::arbitrary<std::string>();
    for (const TokenId token : model->tokenize(rubbish, true, true))
      RC_ASSERT(token >= 0 && token < model->vocabulary_size());
    const auto tokens = *rc::gen::arbitrary<std::vector<TokenId>>();
    (void)model->detokenize(tokens);
  }));
}

TEST(Model, SpecialTokensAreKnown) {
  const auto model = tiny_model();
  const auto user = model->tokenize("<|user|>", false, true);
  ASSERT_EQ(user.size(), 1u);
  EXPECT_TRUE(model->is_special(user[0]));
  EXPECT_EQ(model->piece(user[0]), "<|user|>");
  EXPECT_GT(model->tokenize("<|user|>", false, false).size(), 1u);
  EXPECT_FALSE(model->is_special(model->tokenize("the", false, false).back()));
  for (const TokenId outside : {-1, model->vocabulary_size(), INT32_MAX, INT32_MIN}) {
    EXPECT_TRUE(model->is_special(outside));
    EXPECT_EQ(model->piece(outside), "");
    EXPECT_EQ(model->detokenize(std::vector<TokenId>{outside}), "");
  }
  const auto end = model->end_of_generation();
  for (const char* text : {"<|end|>", "<|endoftext|>"})
    EXPECT_EQ(std::ranges::count(end, model->tokenize(text, false, true).at(0)), 1) << text;
}

TEST(Model, ChatTemplates) {
  const auto model = tiny_model();
  const std::vector<ChatMessage> chat{{"system", "Be brief."}, {"user", "Why?"}};
  const auto text = model->apply_chat_template(chat, true);
  ASSERT_TRUE(text) << describe(text.error());
  EXPECT_EQ(*text, "<|system|>\nBe brief.<|end|>\n<|user|>\nWhy?<|end|>\n<|assistant|>\n");
  const std::vector<ChatMessage> empty;
  EXPECT_EQ(*model->apply_chat_template(empty, false), "");
  const std::vector<ChatMessage> large{{"user", std::string(1 << 20, 'x')}};
  EXPECT_GT(model->apply_chat_template(large, true)->size(), size_t{1} << 20);
}

TEST(Model, ATemplateThatIsAbsentOrUnknown) {
  const Folder folder;
  std::string bytes = bytes_of(tiny_file());
  const size_t key = bytes.find("tokenizer.chat_template");
  ASSERT_NE(key, std::string::npos);
  bytes[key + 10] = 'X';
  put_bytes(folder / "absent.gguf", bytes);
  const std::vector<ChatMessage> chat{{"user", "Why?"}};
  EXPECT_EQ(*Model::load(folder / "absent.gguf", true).value()->apply_chat_template(chat, true),
            "user: Why?\nassistant:");
  bytes[key + 10] = 'c';
  for (size_t i = key; (i = bytes.find("<|", i)) != std::string::npos && i < key + 500;)
    bytes[i] = '#';
  put_bytes(folder / "unknown.gguf", bytes);
  const auto unknown = Model::load(folder / "unknown.gguf", true).value()->apply_chat_template(chat, true);
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(has(unknown.error().message, "chat template"));
}

TEST(Model, SeveralThreadsReadAtOnce) {
  const auto model = tiny_model();
  const auto expected = model->tokenize("one text for everybody", true, true);
  std::vector<std::jthread> readers;
  for (int t = 0; t < 4; ++t) {
    readers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(model->tokenize("one text for everybody", true, true), expected);
        EXPECT_EQ(model->detokenize(expected), "<s> one text for everybody");
      }
    });
  }
}

TEST(ModelFile, ForeignThingsAreToldApart) {
  const Folder folder;
  EXPECT_TRUE(has(why(folder / "absent.gguf", ErrorCode::kNotFound), "no such"));
  EXPECT_TRUE(has(why(folder.path()), "folder"));
  put_bytes(folder / "empty", "");
  EXPECT_TRUE(has(why(folder / "empty"), "empty"));
  put_bytes(folder / "text", "{\"architecture\": \"llama\"}");
  EXPECT_TRUE(has(why(folder / "text"), "not a GGUF"));
  put_bytes(folder / "short", "GGUF\3");
  EXPECT_TRUE(has(why(folder / "short"), "truncated"));
  ::mkfifo((folder / "fifo").c_str(), 0600);
  EXPECT_TRUE(has(why(folder / "fifo"), "regular"));
  std::string bytes = bytes_of(tiny_file());
  bytes[4] = 1;
  put_bytes(folder / "one", bytes);
  EXPECT_TRUE(has(why(folder / "one"), "version 1"));
  bytes[4] = 9;
  put_bytes(folder / "nine", bytes);
  EXPECT_TRUE(has(why(folder / "nine"), "version 9"));
  bytes[4] = 3;
  bytes[14] = 1;  // 2^48 tensors
  put_bytes(folder / "tensors", bytes);
  EXPECT_TRUE(has(why(folder / "tensors"), "claims"));
}

TEST(ModelFile, AnUnknownArchitectureAndMissingWeightsAreNamed) {
  const Folder folder;
  const std::string bytes = bytes_of(tiny_file());
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = bytes;
    for (size_t i = 0; (i = changed.find(from, i)) != std::string::npos; i += to.size())
      changed.replace(i, from.size(), to);
    put_bytes(folder / "changed.gguf", changed);
    return why(folder / "changed.gguf");
  };
  const size_t value = bytes.find("general.architecture") + 20 + 4 + 8;
  ASSERT_EQ(bytes.substr(value, 5), "llama");
  std::string changed = bytes;
  changed.replace(value, 5, "lemur");
  put_bytes(folder / "lemur.gguf", changed);
  EXPECT_TRUE(has(why(folder / "lemur.gguf"), "lemur"));
  EXPECT_TRUE(has(with("blk.2.ffn_up.weight", "blk.2.ffn_xx.weight"), "blk.2.ffn_up.weight"));
  EXPECT_TRUE(has(with("tokenizer.ggml.tokens", "tokenizer.ggml.tockens"), "damaged"));
  EXPECT_TRUE(has(with("tokenizer.ggml.model", "tokenizer.ggml.modle"), "no tokenizer"));
  EXPECT_TRUE(has(with("llama.block_count", "llama.block_c0unt"), "block_count is 0"));
  EXPECT_EQ(with("general.name", "general.mane"), "loaded");
  const auto vocabulary = std::filesystem::path(GOODPUT_SOURCE_DIR) / ".deps/llama.cpp/models/ggml-vocab-phi-3.gguf";
  if (std::filesystem::exists(vocabulary)) {
    EXPECT_TRUE(has(why(vocabulary), "vocabulary only"));
    EXPECT_TRUE(Model::load(vocabulary, true));
  }
}

}  // namespace
}  // namespace goodput
