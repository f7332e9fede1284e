// A verb is parse → plan → run → render. Each stands in a file of its own (cli/<verb>.cc, at most ~150 lines) and is
// listed in verbs.cc. CLI11 parses flags; configuration from environment and files is merged in config.cc for all
// alike.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"

namespace goodput {

// Exit codes of every verb.
enum class Exit : int {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,         // usage or configuration
  kUnreachable = 3,   // target unreachable
  kTargetMissed = 4,  // gate or target not met
  kInvalid = 5,       // measurement INVALID
  kInterrupted = 130,
};

struct Verb {
  std::string_view name;
  std::string_view summary;   // one line of `goodput help`
  std::string_view examples;  // shown first in `goodput help VERB`
  // Declares the flags on `app` and returns what to do once they are parsed. State lives in the returned function.
  std::function<Exit()> (*declare)(CLI::App& app);
  // Rewrites the arguments before they are parsed, where another tool's command lines are accepted; null: as they are.
  Result<std::vector<std::string>> (*complete)(std::vector<std::string> arguments) = nullptr;
};

std::span<const Verb> verbs();

// Prints "goodput: context: message" on stderr and maps the error's code to an exit code.
Exit report_error(const Error&);

}  // namespace goodput
