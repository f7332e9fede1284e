// How much memory reading a trace takes: a generated file of two million rows in Azure's 2024 shape, and one of a
// conversation of ShareGPT's array on a single line, are read through the public reader. The growth of the peak
// resident set between the first thousand rows and the last is what a 27-million-row file would add to: it must be
// nothing.
//   bench_trace_memory [ROWS]
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "workload/trace.h"

using namespace goodput;

namespace {

int64_t peak_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

void write_azure(const std::string& path, int64_t rows) {
  std::FILE* out = std::fopen(path.c_str(), "w");
  std::fputs("TIMESTAMP,ContextTokens,GeneratedTokens\n", out);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t s = i / 40;
    fmt::print(out, "2024-05-{:02}T{:02}:{:02}:{:02}.{:06}+00:00,{},{}\n", 10 + s / 86'400, s / 3'600 % 24, s / 60 % 60,
               s % 60, i % 40 * 25'000, 1 + i % 4'000, i % 500);
  }
  std::fclose(out);
}

void write_sharegpt(const std::string& path, int64_t rows) {
  std::FILE* out = std::fopen(path.c_str(), "w");
  std::fputs("[", out);
  for (int64_t i = 0; i < rows; ++i)
    fmt::print(out,
               "{}{{\"id\":\"{}\",\"conversations\":[{{\"from\":\"human\",\"value\":\"question {}\"}},"
               "{{\"from\":\"gpt\",\"value\":\"answer {}\"}}]}}",
               i == 0 ? "" : ",", i, i, i);
  std::fputs("]", out);
  std::fclose(out);
}

// Growth of the peak over the reading, after its first thousand rows, in KiB; -1: it failed.
int64_t growth(const std::string& path, int64_t rows) {
  int64_t read = 0, early = 0;
  const auto facts = read_trace({.file = path}, [&](const TraceRow&) {
    if (++read == 1'000)
      early = peak_kib();
  });
  if (!facts || read != rows) {
    fmt::print(stderr, "{} rows of {}: {}\n", read, rows, facts ? "" : describe(facts.error()));
    return -1;
  }
  return peak_kib() - early;
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t rows = argc > 1 ? std::atoll(argv[1]) : 2'000'000;
  const std::string path = std::filesystem::temp_directory_path() / fmt::format("goodput_rows_{}", ::getpid());
  int64_t worst = 0;
  for (const auto write : {write_azure, write_sharegpt}) {
    write(path, rows);
    const int64_t grown = growth(path, rows);
    fmt::print("{} rows, {} MB: the peak grew by {} KiB to {} KiB\n", rows,
               std::filesystem::file_size(path) / 1'000'000, grown, peak_kib());
    std::filesystem::remove(path);
    if (grown < 0)
      return 1;
    worst = std::max(worst, grown);
  }
  fmt::print(
      "{{\"name\":\"trace-memory\",\"value\":{},\"unit\":\"KiB\",\"bar\":1024,\"ok\":{},\"better\":\"lower\","
      "\"rows\":{}}}\n",
      worst, worst <= 1024, rows);
}
