// The formats other than Azure's: fixtures in each one's published shape, and everything that can be wrong with one.
#include "workload/trace_formats.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/limits.h"
#include "base/log.h"
#include "workload/trace.h"

namespace goodput {
namespace {

struct Read {
  Result<TraceFacts> facts;
  std::vector<TraceRow> rows;
};

Read read(std::string_view bytes, TraceSpec spec = {}) {
  spec.file = "memory";
  std::vector<TraceRow> rows;
  auto input = TraceInput::of_bytes(bytes);
  if (!input)
    return {tl::unexpected(input.error()), {}};
  auto facts = read_trace(*input, spec, [&](const TraceRow& row) { rows.push_back(row); });
  return {std::move(facts), std::move(rows)};
}

std::vector<TraceRow> rows_of(std::string_view bytes, TraceFormat expected, const TraceSpec& spec = {}) {
  Read r = read(bytes, spec);
  if (!r.facts) {
    ADD_FAILURE() << describe(r.facts.error());
    return {};
  }
  EXPECT_EQ(to_string(r.facts->format), to_string(expected));
  return std::move(r.rows);
}

std::string problem_of(std::string_view bytes, const TraceSpec& spec = {}) {
  const Read r = read(bytes, spec);
  return r.facts ? "read" : describe(r.facts.error());
}

constexpr std::string_view kMooncake =
    R"({"timestamp":0,"input_length":6758,"output_length":500,"hash_ids":[0,1,2,3,4,5,6,7,8,9,10,11,12,13]})"
    "\n";

TEST(TraceFormats, Mooncake) {
  // CRLF, a byte order mark, no newline at the end, keys in any order, unknown keys, 64-bit ids.
  const auto rows =
      rows_of("\xEF\xBB\xBF" + std::string(kMooncake.substr(0, kMooncake.size() - 1)) +
                  "\r\n\r\n{\"hash_ids\": [18446744073709551615, 9007199254740993], \"x\": {\"y\": [1, {}]}, "
                  "\"output_length\": 8, \"input_length\": 1000, \"timestamp\": 27482}",
              TraceFormat::kMooncake);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at, Nanos(0));
  EXPECT_EQ(rows[0].prompt, Tokens(6758));
  EXPECT_EQ(rows[0].output, Tokens(500));
  EXPECT_EQ(rows[0].blocks.size(), 14u);
  EXPECT_EQ(rows[0].block, Tokens(512));
  EXPECT_EQ(rows[1].at, milliseconds(27'482));
  EXPECT_EQ(rows[1].blocks, (std::vector<uint64_t>{UINT64_MAX, 9007199254740993}));
  EXPECT_EQ(rows[1].line, 3u);
}

// Case 49, row by row.
TEST(TraceFormats, Case49MooncakeRowChecks) {
  const std::string first(kMooncake);
  // Row 1: 13 × 512 < length <= 14 × 512.
  for (const auto& [length, right] : {std::pair(6656, false), {6657, true}, {7168, true}, {7169, false}}) {
    std::string row = first;
    row.replace(row.find("6758"), 4, std::to_string(length));
    EXPECT_EQ(problem_of(row) == "read", right) << length;
  }
  // Row 2: refused with its line, or read with another block size.
  const std::string second = first + R"({"timestamp":200,"input_length":20,"output_length":8,"hash_ids":[0,1]})";
  const auto says = problem_of(second);
  EXPECT_TRUE(says.starts_with("memory:2: hash_ids: 2 blocks of 512 tokens stand for 513 to 1024 tokens")) << says;
  EXPECT_NE(says.find("block_tokens"), std::string::npos);
  EXPECT_EQ(problem_of(R"({"timestamp":200,"input_length":20,"output_length":8,"hash_ids":[0,1]})",
                       {.block_tokens = Tokens(16)}),
            "read");
  // Row 3: a fraction: milliseconds or seconds?
  const std::string third = R"({"timestamp":0,"input_length":15,"output_length":6,"hash_ids":[2]})"
                            "\n"
                            R"({"timestamp":0.4,"input_length":15,"output_length":6,"hash_ids":[2]})";
  const auto unit = problem_of(third);
  EXPECT_TRUE(unit.starts_with("memory:2: timestamp: 0.4 is not a whole number of milliseconds")) << unit;
  EXPECT_NE(unit.find("time_unit"), std::string::npos);
  EXPECT_EQ(rows_of(third, TraceFormat::kMooncake, {.time_unit = seconds(1)})[1].at, milliseconds(400));
  EXPECT_EQ(rows_of(third, TraceFormat::kMooncake, {.time_unit = milliseconds(1)})[1].at, microseconds(400));
  // Row 4: neither time nor output: the caller's to fill in. Row 5: text instead of a length.
  const auto rest = rows_of(R"({"input_length":100,"hash_ids":[3]})"
                            "\n"
                            R"({"timestamp":27482,"text_input":"hi","output_length":3})",
                            TraceFormat::kMooncake);
  EXPECT_FALSE(rest[0].at);
  EXPECT_FALSE(rest[0].output);
  EXPECT_EQ(rest[1].text, "hi");
  EXPECT_FALSE(rest[1].prompt);
}

TEST(TraceFormats, TimedTraceHasItsOwnKeysAndUnits) {
  const std::string_view bytes = R"({"t": 1.5000001, "in": 33, "out": 2, "ids": [1, -2, "a"]})"
                                 "\n"
                                 R"({"t": "2024-05-10 00:00:00", "in": 3, "out": 2})";
  TraceSpec spec{.format = TraceFormat::kTimedTrace, .labels = {"t", "in", "out", "ids"}};
  const Read r = read(bytes, spec);
  ASSERT_TRUE(r.facts) << describe(r.facts.error());
  EXPECT_EQ(r.rows[0].block, Tokens(16));
  EXPECT_EQ(r.rows[0].blocks.size(), 3u);
  // From 1.5000001 s after 1970 to 2024, exactly.
  EXPECT_EQ(r.rows[1].at, Nanos(1'715'299'200'000'000'000 - 1'500'000'100));
  spec.time_unit = microseconds(1);
  EXPECT_EQ(read(R"({"t": 5, "in": 3, "out": 2})"
                 "\n"
                 R"({"t": 7.25, "in": 3, "out": 2})",
                 spec)
                .rows[1]
                .at,
            Nanos(2250));
  EXPECT_NE(problem_of(R"({"timestamp": 5, "input_length": 3})").find("mooncake (milliseconds) or timed_trace"),
            std::string::npos);
}

TEST(TraceFormats, BurstGptOldAndNewColumns) {
  // Case 51's row A: response tokens 0 is a failed request's mark, kept as 0.
  const auto old_rows = rows_of(
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,230,1317,Conversation log\n"
      "118,GPT-4,417,276,693,Conversation log\n119,ChatGPT,472,0,472,API log\n",
      TraceFormat::kBurstGpt);
  ASSERT_EQ(old_rows.size(), 4u);
  EXPECT_EQ(old_rows[1].at, seconds(40));
  EXPECT_EQ(old_rows[2].prompt, Tokens(417));
  EXPECT_EQ(old_rows[2].output, Tokens(276));
  EXPECT_EQ(old_rows[3].output, Tokens(0));
  const auto new_rows = rows_of(
      "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\r\n"
      "5.5,a-1,0.3,ChatGPT,472,18,490,Conversation log\r\n10454400.1234567,,,GPT-4,1,2,3,\"API, log\"",
      TraceFormat::kBurstGpt);
  ASSERT_EQ(new_rows.size(), 2u);
  EXPECT_EQ(new_rows[1].at, Nanos(10'454'394'623'456'700));
  EXPECT_EQ(new_rows[1].prompt, Tokens(1));
  EXPECT_TRUE(problem_of("Timestamp,Model,Request tokens,Response tokens\nsoon,m,1,2\n")
                  .starts_with("memory:2: Timestamp: expected seconds, found 'soon'"));
}

TEST(TraceFormats, BailianSessionsByParent) {
  const auto rows = rows_of(
      R"({"chat_id":159,"parent_chat_id":-1,"timestamp":61.114,"input_length":17,"output_length":132,"type":"text","turn":1,"hash_ids":[7,8]})"
      "\n"
      R"({"chat_id":160,"parent_chat_id":159,"timestamp":61.1140001,"input_length":40,"output_length":5,"type":"text","turn":2,"hash_ids":[7,8]})",
      TraceFormat::kBailian);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].id, 159);
  EXPECT_FALSE(rows[0].parent);
  EXPECT_EQ(rows[1].parent, 159);
  EXPECT_EQ(rows[1].at, Nanos(100));
  EXPECT_EQ(rows[1].block, Tokens(16));
  EXPECT_NE(problem_of(R"({"parent_chat_id":1,"chat_id":null,"input_length":1})").find("expected the key 'chat_id'"),
            std::string::npos);
}

TEST(TraceFormats, VllmCustom) {
  const auto rows = rows_of(
      "{\"prompt\": \"What is \\\"goodput\\\"?\\nSay \\u4f60\\u597d.\", \"output_tokens\": 10}\n"
      "{\"prompt\": \"\", \"output_tokens\": null}\n",
      TraceFormat::kVllmCustom);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].text, "What is \"goodput\"?\nSay 你好.");
  EXPECT_EQ(rows[0].output, Tokens(10));
  EXPECT_FALSE(rows[0].at);
  EXPECT_EQ(rows[1].text, "");
  EXPECT_FALSE(rows[1].output);
  EXPECT_TRUE(problem_of("{\"prompt\": 5}").starts_with("memory:1: prompt: expected a text"));
}

TEST(TraceFormats, ShareGptAsAnArrayOrLines) {
  const std::string a =
      R"({"id":"QWJhYvA_0","conversations":[{"from":"human","value":"Hi ]}"},{"from":"gpt","value":"Hello \"you\""},)"
      R"({"from":"human","value":"More"},{"from":"gpt","value":"Sure"},{"from":"human","value":"Left open"}]})";
  const std::string b = R"({"conversation":[{"role":"system","content":"Be brief."},{"role":"user","content":"Q"},)"
                        R"({"role":"user","content":"R"},{"role":"assistant","content":"A"}]})";
  const std::string none = R"({"conversations":[{"from":"gpt","value":"unasked"}],"x":[[[]]]})";
  for (const std::string& bytes : {"[" + a + ",\n" + none + " , " + b + "]\n", a + "\n" + none + "\r\n" + b,
                                   "\xEF\xBB\xBF\n [\n" + a + ",\n" + none + ",\n" + b + "\n]"}) {
    const Read r = read(bytes);
    ASSERT_TRUE(r.facts) << describe(r.facts.error());
    EXPECT_EQ(r.facts->format, TraceFormat::kShareGpt);
    EXPECT_EQ(r.facts->skipped, 1u);
    ASSERT_EQ(r.rows.size(), 3u);
    EXPECT_EQ(r.rows[0].text, "Hi ]}");
    EXPECT_EQ(r.rows[0].answer, "Hello \"you\"");
    EXPECT_FALSE(r.rows[0].parent);
    EXPECT_EQ(r.rows[1].text, "More");
    EXPECT_EQ(r.rows[1].parent, r.rows[0].id);
    EXPECT_EQ(r.rows[2].text, "Be brief.\nQ\nR");
    EXPECT_FALSE(r.rows[2].parent);
  }
  EXPECT_TRUE(read("[]").facts);
}

TEST(TraceFormats, WrongFilesSayWhere) {
  const std::string good(kMooncake);
  const struct {
    std::string bytes, says;
    TraceSpec spec = {};
  } cases[] = {
      {"", "memory:1: the trace is empty"},
      {" \n\n", "memory:1: the trace is empty"},
      {"a,b,c\n1,2,3\n", "memory:1: not the header of a known trace: expected the columns TIMESTAMP"},
      {"{}\n", "memory:1: not a line of a known trace"},
      {"{\n", "memory:1: not a JSON object"},
      {good + "{\"timestamp\": 1, \"input_length\": 1, \"hash_ids\": [1]", "memory:2: not a JSON object"},
      {good + "{\"timestamp\": 1, \"input_length\": 1}}\n", "memory:2: text after the end"},
      {good + "[1]\n", "memory:2: not a JSON object"},
      {good + "5\n", "memory:2: not a JSON object"},
      {good + "{\"timestamp\": -1, \"input_length\": 1}\n",
       "memory:2: timestamp: expected a time of at least 0, found '-1'"},
      {good + "{\"timestamp\": 1e300, \"input_length\": 1}\n", "memory:2: timestamp"},
      {good + "{\"timestamp\": 99999999999999999999, \"input_length\": 1}\n", "memory:2: timestamp"},
      {good + "{\"timestamp\": 1, \"input_length\": 1.5}\n", "memory:2: input_length: expected 0 to 1048576 tokens"},
      {good + "{\"timestamp\": 1, \"input_length\": -5}\n", "memory:2: input_length"},
      {good + "{\"timestamp\": 1, \"input_length\": \"5\"}\n", "memory:2: input_length"},
      {good + "{\"timestamp\": 1, \"input_length\": 2000000}\n", "memory:2: input_length"},
      {good + "{\"timestamp\": true, \"input_length\": 2}\n", "memory:2: timestamp: expected a number"},
      {good + "{\"timestamp\": 1}\n", "memory:2: expected the key 'input_length' or 'text_input'"},
      {good + "{\"timestamp\": 1, \"input_length\": 2, \"hash_ids\": 5}\n", "memory:2: hash_ids: expected an array"},
      {good + "{\"timestamp\": 1, \"input_length\": 2, \"hash_ids\": [1.5]}\n", "memory:2: hash_ids"},
      {good + "{\"timestamp\": 1, \"input_length\": 2, \"x\": \"\xff\"}\n", "memory:2: not a JSON object"},
      {"[", "memory:1: the file ends inside its array"},
      {"[{\"conversations\": [\n", "memory:1: the file ends inside this element"},
      {"[{\"conversations\": []}\n\n{}]", "memory:3: expected ',' or ']'"},
      {"[{\"conversations\": []},\n 5]", "memory:2: expected an object"},
      {"[{\"conversations\": []}]\n x", "memory:2: text after the end of the array"},
      {"[{\"conversations\": 5}]", "memory:1: conversations: expected an array of turns"},
      {"[{\"conversations\": [5]}]", "memory:1: conversations: expected objects"},
      {"{\"conversations\": []}\nx", "memory:2: expected an object"},
      {"{\"a\": 1}", "memory:1: expected the key 'prompt'", {.format = TraceFormat::kVllmCustom}},
      {"Timestamp,Model\n", "expected a column 'Request tokens'", {.format = TraceFormat::kBurstGpt}},
  };
  for (const auto& c : cases) {
    const auto says = problem_of(c.bytes, c.spec);
    EXPECT_NE(says.find(c.says), std::string::npos) << c.says << "\n" << says;
    EXPECT_LT(says.size(), 400u);
  }
}

TEST(TraceFormats, LimitsOfElementsAndTurns) {
  std::string text(limits::kMaxTraceRecord, 'x');
  EXPECT_NE(problem_of("[{\"conversations\": [], \"x\": \"" + text + "\"}]").find("an element longer than"),
            std::string::npos);
  std::string turns;
  for (size_t i = 0; i <= limits::kMaxTraceTurns; ++i)
    turns += i == 0 ? "{}" : ",{}";
  EXPECT_NE(problem_of("[{\"conversations\": [" + turns + "]}]").find("more than 4096 turns"), std::string::npos);
  EXPECT_EQ(problem_of("[{\"conversations\": [" + turns.substr(3) + "]}]"), "read");
}

TEST(TraceFormats, OrderIsRestoredInEveryTimedFormat) {
  log::set_level(log::Level::kError);
  const auto rows = rows_of(std::string("{\"timestamp\": 200, \"text_input\": \"b\"}\n"
                                        "{\"timestamp\": 100, \"text_input\": \"a\"}\n"),
                            TraceFormat::kMooncake);
  log::set_level(log::Level::kWarn);
  EXPECT_EQ(rows[0].text, "a");
  EXPECT_EQ(rows[1].at, milliseconds(100));
}

TEST(TraceFormats, AnyBytesReturnInEveryFormat) {
  log::set_level(log::Level::kError);
  EXPECT_TRUE(rc::check("no input ends the process", [] {
    const auto format = static_cast<TraceFormat>(*rc::gen::inRange(0, 8));
    // Close to JSON more often than not.
    const auto bytes = *rc::gen::container<std::string>(
        rc::gen::oneOf(rc::gen::arbitrary<char>(), rc::gen::elementOf(std::string("{}[]\",:\\ \n\r019.eE-truenull"))));
    (void)read(bytes, {.format = format});
    (void)read("[{\"conversations\": [" + bytes, {.format = format});
    (void)read("{\"timestamp\": 1, \"input_length\": 3, \"hash_ids\": [" + bytes, {.format = format});
  }));
  log::set_level(log::Level::kWarn);
}

}  // namespace
}  // namespace goodput
