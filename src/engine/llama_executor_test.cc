// Batches built by hand on the tiny model: what an executor promises, without a scheduler.

#include "engine/llama_executor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/test_files.h"

namespace goodput {
namespace {

using Status = SequenceResult::Status;
using Text = std::vector<TokenId>;

Text prompt(int length, int seed) {
  Text tokens;
  for (int i = 0; i < length; ++i)
    tokens.push_back(300 + (i * 37 + seed * 1009) % 3000);
  return tokens;
}

// Drives an executor the way a scheduler would, one batch at a time.
class Driver {
 public:
  explicit Driver(Settings settings = {}, Tokens cells = Tokens(2048)) {
    auto made = make_llama_executor(tiny_model(), settings, {.kv_tokens = cells, .threads = 1});
    EXPECT_TRUE(made) << (made ? "" : describe(made.error()));
    executor_ = std::move(*made);
  }
  Executor& executor() { return *executor_; }

  Driver& op(KvOp::Kind kind, int slot, int keep = 0, int from = 0) {
    batch_.ops.push_back({.kind = kind, .slot = Slot(slot), .from = Slot(from), .keep = Tokens(keep)});
    return *this;
  }
  // Tokens of slot `slot` from its present length on; the request of slot n has the id n.
  Driver& add(int slot, Text tokens, bool samples = true) {
    return add_at(slot, length(slot), std::move(tokens), samples);
  }
  Driver& add_at(int slot, int first, Text tokens, bool samples = true) {
    texts_.push_back(std::make_unique<Text>(std::move(tokens)));
    batch_.sequences.push_back({.id = RequestId(static_cast<uint64_t>(slot)),
                                .slot = Slot(slot),
                                .first = Tokens(first),
                                .tokens = *texts_.back(),
                                .samples = samples});
    batch_.total += Tokens(texts_.back()->size());
    return *this;
  }
  std::vector<SequenceResult> run() {
    for (const ScheduledSequence& s : batch_.sequences) {
      if (std::ranges::find(open_, s.id) != open_.end())
        continue;
      EXPECT_TRUE(executor_->open(s.id, sampling));
      open_.push_back(s.id);
    }
    const StepResult& result = executor_->run(batch_);
    EXPECT_GE(result.duration, result.decode + result.sampling);
    EXPECT_EQ(result.sequences.size(), batch_.sequences.size());
    batch_ = {};
    texts_.clear();
    return result.sequences;
  }
  int length(int slot) { return executor_->kv_length(Slot(slot)).value().count(); }
  // Greedy or sampled continuation of one slot, alone in its batches.
  Text generate(int slot, TokenId next, int n) {
    Text out;
    for (int i = 0; i < n; ++i) {
      next = add(slot, {next}).run().at(0).sampled.value();
      out.push_back(next);
    }
    return out;
  }

  SamplingParams sampling{.ignore_eos = true};

 private:
  std::unique_ptr<Executor> executor_;
  Batch batch_;
  std::vector<std::unique_ptr<Text>> texts_;
  std::vector<RequestId> open_;
};

TEST(LlamaExecutor, CapabilitiesAreReadBack) {
  Driver d({.max_num_seqs = 8, .max_num_batched_tokens = Tokens(100)}, Tokens(1000));
  const Capabilities c = d.executor().capabilities();
  EXPECT_EQ(c.kv.total, Blocks(1024 / 16));  // libllama rounds 1000 up to a multiple of 256
  EXPECT_EQ(c.kv.per_slot, c.kv.total);
  EXPECT_EQ(c.kv.slots, 256);
  EXPECT_EQ(c.max_batch_tokens, Tokens(100));
  EXPECT_EQ(c.max_len, Tokens(1024));
  EXPECT_FALSE(d.executor().modelled_time());
}

TEST(LlamaExecutor, ImpossibleSettingsAreNamed) {
  const auto refuse = [](Settings settings, LlamaOptions options, std::string_view part) {
    const auto made = make_llama_executor(tiny_model(), settings, options);
    ASSERT_FALSE(made) << part;
    EXPECT_EQ(made.error().code, ErrorCode::kUsage);
    EXPECT_NE(made.error().message.find(part), std::string::npos) << made.error().message;
  };
  refuse({.max_model_len = Tokens(4097)}, {}, "context of 4096");
  refuse({.max_num_seqs = 257, .max_num_batched_tokens = Tokens(300)}, {}, "max_num_seqs");
  refuse({.max_num_seqs = 0}, {}, "max_num_seqs");
  refuse({.max_num_seqs = 32, .max_num_batched_tokens = Tokens(16)}, {}, "max_num_batched_tokens");
  refuse({.max_num_batched_tokens = Tokens(1 << 20)}, {}, "max_num_batched_tokens");
  refuse({}, {.kv_tokens = Tokens(0)}, "KV cache");
  Driver d;
  EXPECT_EQ(d.executor().open(RequestId(1), {.temperature = -1}).error().code, ErrorCode::kUsage);
}

TEST(LlamaExecutor, LengthsFollowEveryOp) {
  Driver d;
  EXPECT_EQ(d.length(3), 0);
  EXPECT_EQ(d.executor().kv_length(Slot(-1)), std::nullopt);
  EXPECT_EQ(d.executor().kv_length(Slot(256)), std::nullopt);
  d.add(3, prompt(100, 1), false).run();
  EXPECT_EQ(d.length(3), 100);
  d.op(KvOp::Kind::kShare, 255, 64, 3).run();
  EXPECT_EQ(d.length(255), 64);
  EXPECT_EQ(d.length(3), 100);
  d.op(KvOp::Kind::kTruncate, 3, 48).run();
  EXPECT_EQ(d.length(3), 48);
  EXPECT_EQ(d.length(255), 64);
  d.op(KvOp::Kind::kRelease, 3).op(KvOp::Kind::kShare, 3, 16, 255).run();
  EXPECT_EQ(d.length(3), 16);
  d.op(KvOp::Kind::kRelease, 3).op(KvOp::Kind::kRelease, 255).run();
  EXPECT_EQ(d.length(3) + d.length(255), 0);
}

TEST(LlamaExecutor, AChunkWithoutOutputSamplesNothing) {
  Driver d;
  EXPECT_EQ(d.add(0, prompt(40, 1), false).run().at(0).sampled, std::nullopt);
  const auto both = d.add(0, prompt(8, 2), false).add(1, prompt(8, 3), true).run();
  EXPECT_EQ(both[0].sampled, std::nullopt);
  EXPECT_TRUE(both[1].sampled.has_value());
}

// The same arithmetic per row whatever else is in the batch: on the CPU a row's result does not depend on its company,
// as long as the kernels are the same (single tokens against single tokens).
TEST(LlamaExecutor, CompanyDoesNotChangeGreedyTokens) {
  Driver alone, together;
  std::vector<Text> expected, got(8);
  Text next;
  for (int s = 0; s < 8; ++s) {
    const TokenId first = alone.add(s, prompt(30 + s, s)).run().at(0).sampled.value();
    expected.push_back(alone.generate(s, first, 20));
    next.push_back(together.add(s, prompt(30 + s, s)).run().at(0).sampled.value());
    EXPECT_EQ(next.back(), first);
  }
  for (int i = 0; i < 20; ++i) {
    for (int s = 0; s < 8; ++s)
      together.add(s, {next[static_cast<size_t>(s)]});
    const auto results = together.run();
    for (size_t s = 0; s < 8; ++s)
      got[s].push_back(next[s] = results[s].sampled.value());
  }
  for (size_t s = 0; s < 8; ++s)
    EXPECT_EQ(got[s], expected[s]) << s;
}

// Other chunks use other kernels, whose sums round differently: nearly always the same token, never a different text
// from the start.
TEST(LlamaExecutor, ChunksOfAPromptHardlyMatter) {
  int same = 0;
  for (int seed = 0; seed < 30; ++seed) {
    Driver whole, chunked;
    const Text text = prompt(120, seed);
    const auto expected = whole.add(0, text).run().at(0).sampled;
    std::optional<TokenId> got;
    for (size_t at = 0; at < text.size(); at += 17) {
      const size_t end = std::min(at + 17, text.size());
      got = chunked
                .add(0, Text(text.begin() + static_cast<long>(at), text.begin() + static_cast<long>(end)),
                     end == text.size())
                .run()
                .at(0)
                .sampled;
    }
    same += got == expected ? 1 : 0;
  }
  EXPECT_GE(same, 24);
}

TEST(LlamaExecutor, GibberishDoesNotRepeatItself) {
  Driver d;
  Text text = d.generate(0, d.add(0, prompt(30, 1)).run().at(0).sampled.value(), 60);
  std::ranges::sort(text);
  EXPECT_GT(std::unique(text.begin(), text.end()) - text.begin(), 40);
}

// Sharing changes who owns cells, not what is computed: the same chunks give the same tokens.
TEST(LlamaExecutor, ASharedPrefixContinuesLikeAnOwnOne) {
  Driver own, shared;
  own.add(0, prompt(64, 1), false).run();
  const TokenId expected = own.add(0, prompt(20, 9)).run().at(0).sampled.value();
  const Text rest = own.generate(0, expected, 12);

  shared.add(0, prompt(64, 1), false).run();
  shared.op(KvOp::Kind::kShare, 1, 64, 0).run();
  shared.op(KvOp::Kind::kRelease, 0).run();  // the donor vanishes
  EXPECT_EQ(shared.length(0), 0);
  shared.add(0, prompt(60, 5), false).run();  // and its slot is used again
  EXPECT_EQ(shared.add(1, prompt(20, 9)).run().at(0).sampled, expected);
  EXPECT_EQ(shared.generate(1, expected, 12), rest);
}

TEST(LlamaExecutor, ATruncatedSlotContinuesLikeANewOne) {
  Driver once, again;
  once.add(0, prompt(48, 1), false).run();
  const auto expected = once.add(0, prompt(16, 2)).run().at(0).sampled;
  again.add(0, prompt(48, 1), false).run();
  again.add(0, prompt(30, 7)).run();
  again.op(KvOp::Kind::kTruncate, 0, 48);
  EXPECT_EQ(again.add_at(0, 48, prompt(16, 2)).run().at(0).sampled, expected);
}

TEST(LlamaExecutor, AWrongSequenceIsLostAlone) {
  Driver d;
  d.add(0, prompt(20, 1), false).add(1, prompt(20, 2), false).run();
  for (int wrong = 0; wrong < 6; ++wrong) {
    d.op(KvOp::Kind::kRelease, 1).run();
    d.add(1, prompt(20, 2), false).run();
    const int before = d.length(0);
    d.add(0, {400});
    switch (wrong) {
      case 0:
        d.add_at(1, 25, {400});
        break;  // a gap
      case 1:
        d.add_at(1, 5, {400});
        break;  // an overlap
      case 2:
        d.add(1, {-1});
        break;  // no such token
      case 3:
        d.add(1, {400, tiny_model()->vocabulary_size()});
        break;  // nor this
      case 4:
        d.add(1, {});
        break;  // nothing
      case 5:
        d.op(KvOp::Kind::kShare, 1, 999, 0).add_at(1, 999, {400});
        break;  // more than the donor has
      default:
        break;
    }
    const auto results = d.run();
    EXPECT_EQ(results[0].status, Status::kOk) << wrong;
    EXPECT_TRUE(results[0].sampled) << wrong;
    EXPECT_EQ(results[1].status, Status::kKvLost) << wrong;
    EXPECT_EQ(results[1].sampled, std::nullopt) << wrong;
    EXPECT_EQ(d.length(0), before + 1) << wrong;
    EXPECT_EQ(d.length(1), 0) << wrong;
  }
  for (const int slot : {-1, 256, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(d.add_at(slot, 0, {400}).run().at(0).status, Status::kKvLost);
    d.op(KvOp::Kind::kRelease, slot).op(KvOp::Kind::kShare, 9, 5, slot).op(KvOp::Kind::kTruncate, slot, -7).run();
  }
  EXPECT_GT(d.length(0), 20);
}

TEST(LlamaExecutor, AWrongBatchIsLostAndOthersStay) {
  Driver d({.max_num_seqs = 4, .max_num_batched_tokens = Tokens(64)});
  d.add(0, prompt(20, 1), false).add(9, prompt(20, 2), false).run();
  const auto lost = [&] {
    const auto results = d.run();
    EXPECT_TRUE(std::ranges::all_of(results, [](const auto& r) { return r.status == Status::kKvLost && !r.sampled; }));
    EXPECT_EQ(d.length(1) + d.length(2), 0);
    EXPECT_EQ(d.length(9), 20);
  };
  d.add(1, prompt(60, 1)).add(2, prompt(5, 1));  // over the budget
  lost();
  d.add(1, {400}).add_at(1, 1, {401}).add(2, {402});  // one slot twice
  lost();
  for (int slot = 1; slot <= 5; ++slot)
    d.add(slot, {400});  // more outputs than sequences were promised
  lost();
  EXPECT_EQ(d.add(9, {400}).run().at(0).status, Status::kOk);
}

TEST(LlamaExecutor, ExhaustedCellsLoseTheBatchAndNothingElse) {
  Driver d({}, Tokens(256));
  d.add(0, prompt(200, 1), false).run();
  auto results = d.add(1, prompt(57, 2)).run();
  EXPECT_EQ(results[0].status, Status::kKvLost);
  EXPECT_EQ(d.length(1), 0);
  EXPECT_EQ(d.length(0), 200);
  EXPECT_EQ(d.add(1, prompt(56, 2)).run().at(0).status, Status::kOk);  // to the last cell
  EXPECT_EQ(d.add(0, {400}).run().at(0).status, Status::kKvLost);
  EXPECT_EQ(d.length(1), 56);
  EXPECT_EQ(d.length(0), 0);
  EXPECT_EQ(d.add(0, prompt(200, 1)).run().at(0).status, Status::kOk);  // the cells came back
}

TEST(LlamaExecutor, SequencesEndWithTheContext) {
  Driver d({}, Tokens(256));
  d.add(0, prompt(255, 1)).run();
  EXPECT_EQ(d.add(0, {400}).run().at(0).status, Status::kOk);
  EXPECT_EQ(d.add(0, {400}).run().at(0).status, Status::kKvLost);
}

// Pieces of a full cache scattered by releases still take a long prompt: cells need not be neighbours.
TEST(LlamaExecutor, HolesAreFilled) {
  Driver d({}, Tokens(512));
  for (int s = 0; s < 32; ++s)
    d.add(s, prompt(16, s), false).run();
  for (int s = 0; s < 32; s += 2)
    d.op(KvOp::Kind::kRelease, s);
  d.run();
  EXPECT_EQ(d.add(100, prompt(256, 1)).run().at(0).status, Status::kOk);
  EXPECT_EQ(d.add(101, {400}).run().at(0).status, Status::kKvLost);
}

TEST(LlamaExecutor, EndOfGenerationIsNeverSampledWhenIgnored) {
  const Text end = tiny_model()->end_of_generation();
  ASSERT_FALSE(end.empty());
  for (const float temperature : {0.0F, 1.0F, 30.0F}) {
    Driver d;
    d.sampling = {.temperature = temperature, .seed = 4, .ignore_eos = true};
    for (int s = 0; s < 4; ++s) {
      for (const TokenId token : d.generate(s, d.add(s, prompt(10, s)).run().at(0).sampled.value(), 100))
        ASSERT_EQ(std::ranges::count(end, token), 0);
    }
  }
}

TEST(LlamaExecutor, SeedsReproduceAndSurviveRecomputing) {
  const auto text = [](uint64_t seed) {
    Driver d;
    d.sampling = {.temperature = 1, .top_p = 0.95F, .top_k = 50, .seed = seed, .ignore_eos = true};
    return d.generate(0, d.add(0, prompt(20, 1)).run().at(0).sampled.value(), 30);
  };
  EXPECT_EQ(text(1), text(1));
  EXPECT_NE(text(1), text(2));
}

TEST(LlamaExecutor, ARequestThatWasNotOpenedFailsAlone) {
  Driver d;
  d.add(0, prompt(10, 1)).add(1, prompt(10, 2)).run();
  d.executor().close(RequestId(1));
  const auto results = d.add(0, {400}).add(1, {400}).run();
  EXPECT_EQ(results[0].status, Status::kOk);
  EXPECT_EQ(results[1].status, Status::kFailed);
  d.executor().close(RequestId(77));  // never opened
}

TEST(LlamaExecutor, AnEmptyBatchDoesNothing) {
  Driver d;
  EXPECT_TRUE(d.run().empty());
}

TEST(LlamaExecutor, SeveralThreadsComputeTheSame) {
  auto two = make_llama_executor(tiny_model(), {}, {.kv_tokens = Tokens(1024), .threads = 2});
  ASSERT_TRUE(two);
  Driver one;
  const Text text = prompt(200, 3);
  ASSERT_TRUE((*two)->open(RequestId(0), {.ignore_eos = true}));
  Batch batch{
      .sequences = {{.id = RequestId(0), .slot = Slot(0), .first = Tokens(0), .tokens = text, .samples = true}}};
  EXPECT_EQ((*two)->run(batch).sequences.at(0).sampled, one.add(0, text).run().at(0).sampled);
}

// Numbers that fit the tensors but not the arithmetic: libllama asserts on some of them only when it builds a context.
TEST(LlamaExecutor, HostileModelsAreRefusedOrComputed) {
  const Folder folder;
  const std::string bytes = bytes_of(tiny_file());
  for (const std::string key : {"llama.context_length", "llama.attention.head_count", "llama.attention.head_count_kv",
                                "llama.attention.layer_norm_rms_epsilon", "llama.rope.freq_base"}) {
    for (const uint32_t value : {0u, 1u, 4u, 64u, 0x7FFFFFFFu, 0xFFFFFFFFu}) {
      const size_t at = bytes.find(std::string{static_cast<char>(key.size()), 0, 0, 0, 0, 0, 0, 0} + key);
      ASSERT_NE(at, std::string::npos);
      std::string damaged = bytes;
      std::memcpy(damaged.data() + at + 8 + key.size() + 4, &value, 4);
      put_bytes(folder / "hostile.gguf", damaged);
      const pid_t child = ::fork();
      if (child == 0) {
        const auto model = Model::load(folder / "hostile.gguf");
        if (!model)
          ::_exit(0);
        Settings settings;
        settings.max_model_len = std::min(settings.max_model_len, (*model)->info().context_length);
        const auto executor = make_llama_executor(*model, settings, {.kv_tokens = Tokens(512), .threads = 1});
        if (!executor)
          ::_exit(0);
        const Text text = prompt(70, 1);
        (void)(*executor)->open(RequestId(0), {});
        Batch batch;
        batch.sequences = {{.id = RequestId(0), .slot = Slot(0), .first = Tokens(0), .tokens = text, .samples = true}};
        (*executor)->run(batch);
        ::_exit(0);
      }
      int status = -1;
      ::waitpid(child, &status, 0);
      EXPECT_EQ(status, 0) << key << " = " << value;
    }
  }
}

}  // namespace
}  // namespace goodput
